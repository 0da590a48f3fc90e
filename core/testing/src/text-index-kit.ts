import assert from 'node:assert/strict'
import type { CallContext } from '@svc/core'
import type { Json, Space, Store, StoreOp, TextHit, TextIndex, TextQuery } from '@svc/core/contracts'
import type { KitCase } from './kit-case.ts'
import { fails, withTimeLimit } from './store-kit/rig.ts'

/** A store with full-text search to test. Disposing removes it with its data. */
export interface TextIndexUnderTest extends AsyncDisposable {
  readonly store: Store & TextIndex
  /** Closes `store` and opens the same data again. Absent: the data is not durable, and the kit skips these cases. */
  reopen?(): Promise<Store & TextIndex>
  /** Another handle on the same data, as another process would have. Absent: the kit uses the only one twice. */
  second?(): Promise<Store & TextIndex>
}
export type OpenTextIndex = () => Promise<TextIndexUnderTest>

/**
 * Cases for every store that provides `TextIndex`: `for (const one of textIndexKit(open)) it(one.title, one.run)`. `open` returns a
 * new, empty store each time.
 */
export function textIndexKit(open: OpenTextIndex): KitCase[] {
  return cases.map(([title, run]) => ({
    title,
    async run() {
      await using under = await open()
      await withTimeLimit(async ctx => {
        await under.store.open(SPACE, ctx)
        await run(rigOf(under, ctx))
      })
    },
  }))
}

/** The space that the cases write to. */
const SPACE = {
  name: 'text_kit',
  version: 1,
  collections: {
    pages: {
      indexes: { by_owner: ['owner'] },
      text: { content: { fields: ['title', 'body.text', 'tags'], filters: ['owner', 'kind'] } },
    },
    plain: {},
  },
} satisfies Space

interface Rig extends Omit<TextIndexUnderTest, 'store'> {
  readonly ctx: CallContext
  readonly store: Store & TextIndex
  batch(...ops: StoreOp[]): Promise<void>
  /** Puts records of one text, with the keys `0`, `1`, …. */
  fill(...texts: string[]): Promise<void>
  /** The keys that a query finds, best first, page by page. */
  found(query: string, more?: Partial<TextQuery>): Promise<string[]>
  hits(query: string, more?: Partial<TextQuery>): Promise<readonly TextHit[]>
}

const page = (key: string, value: Json): StoreOp => ({ op: 'put', collection: 'pages', key, value })
const titled = (key: string, title: string): StoreOp => page(key, { title })

function rigOf(under: TextIndexUnderTest, ctx: CallContext): Rig {
  const { store } = under
  const search = (query: string, more: Partial<TextQuery>) =>
    store.search('pages', { index: 'content', query, limit: 100, ...more }, ctx)
  const batch = async (...ops: StoreOp[]) => void (await store.batch(ops, {}, ctx))
  return {
    ...under,
    store,
    ctx,
    batch,
    fill: (...texts) => batch(...texts.map((text, at) => titled(String(at), text))),
    hits: async (query, more = {}) => (await search(query, more)).hits,
    async found(query, more = {}) {
      const keys: string[] = []
      for (let cursor: string | undefined; ; ) {
        const { hits, next } = await search(query, { ...more, ...(cursor === undefined ? {} : { cursor }) })
        keys.push(...hits.map(({ record }) => record.key))
        if (next === undefined) return keys
        assert.notEqual(hits.length, 0, 'an empty page has a cursor for another page')
        cursor = next
      }
    },
  }
}

const sorted = (keys: readonly string[]): string[] => keys.toSorted((a, b) => (a < b ? -1 : 1))

/** Whether a query finds these keys, in any order. */
async function finds(
  { found }: Rig,
  wanted: Readonly<Record<string, readonly string[]>>,
  more: Partial<TextQuery> = {}
): Promise<void> {
  for (const [query, keys] of Object.entries(wanted)) assert.deepEqual(sorted(await found(query, more)), sorted(keys), query)
}

type TextCase = readonly [title: string, run: (rig: Rig) => Promise<void>]

const queryCases: readonly TextCase[] = [
  [
    'finds records with all words, in any order, case and field',
    async rig => {
      await rig.batch(
        page('a', { title: 'The quick brown fox', body: { text: 'jumps over the lazy dog' } }),
        page('b', { title: 'A quick start', tags: ['Guide', 'fox'] }),
        page('c', { title: 'Slow', body: { text: 'nothing here' } })
      )
      await finds(rig, {
        quick: ['a', 'b'],
        'FOX Quick': ['a', 'b'],
        'quick dog': ['a'],
        'guide start': ['b'],
        here: ['c'],
        'quick nothing': [],
        qui: [],
      })
    },
  ],
  [
    'accepts phrases, prefixes of words and excluded words',
    async rig => {
      await rig.fill('red green blue', 'green red blue', 'greenhouse effect', 'red wine', 'blue-green algae')
      await finds(rig, {
        '"red green"': ['0'],
        '"green red" blue': ['1'],
        'green*': ['0', '1', '2', '4'],
        'gre*': ['0', '1', '2', '4'],
        'red -green': ['3'],
        'green -"red green"': ['1', '4'],
        'blue -algae -"green red"': ['0'],
        'green -green*': [],
        'blue-green': ['4'],
        '"blue green': ['4'],
        '-red': [],
        'red -': ['0', '1', '3'],
      })
    },
  ],
  [
    'finds words in every script, regardless of accents and compatibility forms',
    async rig => {
      await rig.fill(
        'Crème Brûlée',
        'STRASSE',
        'Ελλάδα ΟΔΟΣ',
        'Привет мир',
        '中文信息检索',
        'हिन्दी में खोज',
        'ｆｕｌｌ ｗｉｄｔｈ',
        '한국어 검색',
        'naïve 😀 café',
        'İstanbul'
      )
      await finds(rig, {
        'creme BRULEE': ['0'],
        'cre\u0300me': ['0'],
        straße: ['1'],
        ελλαδα: ['2'],
        οδος: ['2'],
        'МИР привет': ['3'],
        信息: ['4'],
        息信: [],
        '中文 检索': ['4'],
        खोज: ['5'],
        'full width': ['6'],
        검색: ['7'],
        '한국*': ['7'],
        'cafe naive': ['8'],
        '😀': [],
        istanbul: ['9'],
      })
    },
  ],
  [
    'accepts any text as a query: operators, quotes and code count as words or are ignored',
    async rig => {
      await rig.fill('plain and not or near text', 'filter content rowid', 'other')
      const HOSTILE = [
        '"',
        '""',
        '" "',
        '*',
        '-',
        '--',
        '-"',
        '***',
        '(',
        ')',
        'a AND',
        'NOT',
        'NEAR(',
        '^',
        'f0:',
        '{f0 f1}:x',
        "'",
        "';--",
        '\\',
        '\u0000',
        '\ud800',
        '%',
        '_',
        '+',
        ':',
        '-*',
        '"-',
        '\n',
        '😀*',
        'x"y',
        'x"y"z',
        'DROP TABLE records',
        '"a" * "b"',
        `${'"a" '.repeat(200)}`,
        'a '.repeat(500),
        '('.repeat(1000),
        'x*'.repeat(400),
      ]
      for (const query of HOSTILE) {
        const found = await rig.found(query)
        assert.ok(Array.isArray(found), JSON.stringify(query))
      }
      await finds(rig, {
        'plain AND text': ['0'],
        'plain OR other': [],
        'NOT plain': ['0'],
        'NEAR (near text)': ['0'],
        'NEAR(plain text)': [],
        'filter:content': ['1'],
        'text*)': ['0'],
        '("other")': ['2'],
        "other'; DROP TABLE records; --": [],
        '': [],
        '   ': [],
      })
    },
  ],
  [
    'shows nothing outside of the fixed filters, with any query and cursor',
    async rig => {
      const owners = ['ann', 'bob', 'ann ', null, 1, '1']
      await rig.batch(
        ...owners.flatMap((owner, at) => [
          page(`${at}x`, { owner, kind: 'x', title: 'shared word' }),
          page(`${at}y`, { owner, kind: 'y', title: 'shared word' }),
        ])
      )
      for (const [at, owner] of owners.entries()) {
        await finds(
          rig,
          { shared: [`${at}x`, `${at}y`], 'shared -x': [`${at}x`, `${at}y`], 'word*': [`${at}x`, `${at}y`] },
          { equals: [owner] }
        )
        await finds(rig, { shared: [`${at}y`] }, { equals: [owner, 'y'] })
      }
      await finds(rig, { shared: [] }, { equals: ['unknown'] })
      const foreign = await rig.store.search('pages', { index: 'content', query: 'shared', equals: ['ann'], limit: 1 }, rig.ctx)
      const asked = { index: 'content', query: 'shared', equals: ['bob'], limit: 10 }
      for (const cursor of [foreign.next!, '', 'x', 'e30', Buffer.from('["x",1,"a"]').toString('base64url')])
        await fails(rig.store.search('pages', { ...asked, cursor }, rig.ctx), 'STORE_INVALID')
    },
  ],
]

const changeCases: readonly TextCase[] = [
  [
    'follows each change of a record, together with its batch',
    async rig => {
      const other = (await rig.second?.()) ?? rig.store
      await other.open(SPACE, rig.ctx)
      await rig.batch(titled('a', 'first words'), titled('b', 'first'))
      await rig.batch(titled('a', 'second words'))
      await finds(rig, { first: ['b'], second: ['a'], words: ['a'] })
      await fails(
        rig.store.batch(
          [
            titled('c', 'third'),
            { op: 'delete', collection: 'pages', key: 'b' },
            { ...titled('a', 'third'), ifVersion: 9 } as StoreOp,
          ],
          {},
          rig.ctx
        ),
        'STORE_CONFLICT'
      )
      await finds(rig, { first: ['b'], second: ['a'], third: [] })
      await other.batch(
        [
          { op: 'delete', collection: 'pages', key: 'b' },
          titled('d', 'second try'),
          titled('a', 'no match'),
          titled('a', 'second once'),
        ],
        {},
        rig.ctx
      )
      await finds(rig, { first: [], second: ['a', 'd'], match: [] })
      await rig.batch(page('a', { title: 5, body: 'no text', tags: { second: 'x' } }), page('d', 'second'))
      await finds(rig, { second: [] })
    },
  ],
  [
    'indexes existing records when an index is declared, and drops an index that is no longer declared',
    async rig => {
      await rig.batch({ op: 'put', collection: 'plain', key: 'a', value: { text: 'early bird' } })
      const space = (text: object): Space => ({
        ...SPACE,
        version: 2,
        collections: { ...SPACE.collections, plain: { text } } as Space['collections'] & object,
      })
      await fails(rig.store.search('plain', { index: 'late', query: 'bird', limit: 1 }, rig.ctx), 'STORE_UNKNOWN')
      await rig.store.open(space({ late: { fields: ['text'] } }), rig.ctx)
      await rig.batch({ op: 'migrated', space: SPACE.name, version: 2 })
      const late = async (query: string) =>
        (await rig.store.search('plain', { index: 'late', query, limit: 9 }, rig.ctx)).hits.map(({ record }) => record.key)
      assert.deepEqual(await late('bird'), ['a'])
      await rig.batch({ op: 'put', collection: 'plain', key: 'b', value: { text: 'late bird' } })
      assert.deepEqual(sorted(await late('bird')), ['a', 'b'])
      await rig.store.open(space({ late: { fields: ['text', 'more'] } }), rig.ctx)
      assert.deepEqual(sorted(await late('late')), ['b'])
    },
  ],
  [
    'finds the same records when it is reopened',
    async rig => {
      if (!rig.reopen) return
      await rig.fill('lasting words', 'other words')
      await rig.batch({ op: 'delete', collection: 'pages', key: '1' })
      const again = await rig.reopen()
      await again.open(SPACE, rig.ctx)
      const { hits } = await again.search('pages', { index: 'content', query: 'words', limit: 9 }, rig.ctx)
      assert.deepEqual(
        hits.map(({ record }) => record.value),
        [{ title: 'lasting words' }]
      )
    },
  ],
]

const pageCases: readonly TextCase[] = [
  [
    'ranks rare, frequent matches in short texts first, then sorts by key',
    async rig => {
      const filler = Array.from({ length: 20 }, (_, at) => titled(`f${at}`, `common text number${at}`))
      await rig.batch(
        ...filler,
        titled('once', 'needle and a good many further common words in one long text'),
        titled('often', 'needle needle needle'),
        titled('short', 'needle')
      )
      const [first, second, third] = await rig.found('needle')
      assert.deepEqual([third, sorted([first!, second!])], ['once', ['often', 'short']])
      const hits = await rig.hits('common')
      assert.ok(
        hits.every(({ score }, at) => at === 0 || score <= hits[at - 1]!.score),
        'the scores rise'
      )
      await rig.batch({ op: 'delete', collection: 'pages', key: 'once' })
      await rig.batch(titled('z', 'same words'), titled('é', 'same words'), titled('a', 'same words'))
      assert.deepEqual(await rig.found('same'), ['a', 'z', 'é'])
    },
  ],
  [
    'returns every hit once, page by page, and reports when there is no next page',
    async rig => {
      await rig.batch(
        ...Array.from({ length: 57 }, (_, at) => titled(`k${String(at).padStart(2, '0')}`, `word ${'pad '.repeat(at % 5)}`))
      )
      const all = await rig.found('word')
      assert.equal(new Set(all).size, 57)
      for (const limit of [1, 10, 19, 57, 58]) assert.deepEqual(await rig.found('word', { limit }), all, `pages of ${limit}`)
      const exact = await rig.store.search('pages', { index: 'content', query: 'word', limit: 57 }, rig.ctx)
      assert.equal(exact.next, undefined)
    },
  ],
  [
    'returns whole records with snippets that mark the matches',
    async rig => {
      const long = `${'before '.repeat(100)}the needle in the haystack${' after'.repeat(100)}`
      await rig.batch(
        page('a', { title: 'A <b>needle</b> & more', body: { text: long }, tags: ['none', 'Needles needle'], owner: 'x' })
      )
      const [hit] = await rig.hits('"needle" hay* -absent')
      assert.deepEqual(hit!.record.version, 1)
      assert.equal((hit!.record.value as { owner?: string }).owner, 'x')
      const marked = hit!.snippets.map(({ path, text, marks }) => [path, marks.map(([from, to]) => text.slice(from, to))])
      assert.deepEqual(marked, [
        ['title', ['needle']],
        ['body.text', ['needle', 'haystack']],
        ['tags', ['needle']],
      ])
      assert.equal(hit!.snippets[0]!.text, 'A <b>needle</b> & more')
      const { text } = hit!.snippets[1]!
      assert.ok(text.length < 200 && text.startsWith('…') && text.endsWith('…'), text)
      const [phrase] = await rig.hits('"in the haystack"')
      assert.deepEqual(
        phrase!.snippets.map(({ text: cut, marks }) => marks.map(([from, to]) => cut.slice(from, to))),
        [['in the haystack']]
      )
      await rig.batch(titled('b', `${'é😀 '.repeat(60)}ÄRGER${' 😀é'.repeat(60)}`))
      const [folded] = await rig.hits('arger')
      const [snippet] = folded!.snippets
      assert.deepEqual(
        snippet!.marks.map(([from, to]) => snippet!.text.slice(from, to)),
        ['ÄRGER']
      )
      assert.ok(snippet!.text.isWellFormed(), 'a snippet ends within a character')
    },
  ],
  [
    'searches large texts, and a full page of records',
    async rig => {
      await rig.batch(titled('long', `${'filler '.repeat(50_000)}end`), titled('wide', 'x'.repeat(300_000)))
      await finds(rig, { 'filler end': ['long'] })
      for (let at = 0; at < 3; at++)
        await rig.batch(...Array.from({ length: 1000 }, (_, i) => titled(`m${at}-${i}`, `many words ${i}`)))
      const { hits, next } = await rig.store.search('pages', { index: 'content', query: 'many', limit: 100 }, rig.ctx)
      assert.equal(hits.length, 100)
      assert.notEqual(next, undefined)
    },
  ],
  [
    'rejects invalid searches',
    async rig => {
      const asked: TextQuery = { index: 'content', query: 'x', limit: 10 }
      const bad: Partial<TextQuery>[] = [
        { limit: 0 },
        { limit: 101 },
        { limit: 1.5 },
        { query: 'x'.repeat(1001) },
        { query: 5 as unknown as string },
        { equals: ['a', 'b', 'c'] },
        { equals: [['a']] },
        { equals: 'a' as unknown as Json[] },
      ]
      for (const parts of bad) await fails(rig.store.search('pages', { ...asked, ...parts }, rig.ctx), 'STORE_INVALID')
      await fails(rig.store.search('pages', { ...asked, index: 'by_owner' }, rig.ctx), 'STORE_UNKNOWN')
      await fails(rig.store.search('pages', { ...asked, index: 'constructor' }, rig.ctx), 'STORE_UNKNOWN')
      await fails(rig.store.search('nowhere', asked, rig.ctx), 'STORE_UNKNOWN')
      const space = (text: object): Space => ({
        name: 'bad',
        version: 1,
        collections: { bad: { text } } as unknown as NonNullable<Space['collections']>,
      })
      for (const text of [
        { a: { fields: [] } },
        { a: { fields: [''] } },
        { 'A b': { fields: ['x'] } },
        { a: { fields: ['x'], filters: [''] } },
        { a: { fields: Array.from({ length: 17 }, (_, at) => `f${at}`) } },
      ])
        await fails(rig.store.open(space(text), rig.ctx), 'STORE_INVALID')
    },
  ],
]

const cases: readonly TextCase[] = [...queryCases, ...changeCases, ...pageCases]

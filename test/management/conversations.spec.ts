import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Conversations, Store } from '@svc/core/contracts'
import { testContext, testHost } from '@svc/testing'
import { expect } from 'chai'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { pluginFolder } from '../support/plugin-folder.ts'
import { inNewHome, type Service, startService } from '../support/service.ts'
import { configureFew } from '../support/tides.ts'
import { startTwo } from '../support/two-workers.ts'

const SCOPES = fileURLToPath(new URL('../api/samples/scopes/plugin.ts', import.meta.url))
const PATH = '/api/v1/conversations'
const NAMED = ['jobs', 'admin-api', 'event-feed', 'conversations', 'tools-time']

/** A principal is named by its scopes, so these are two who may do the same. */
const [ANN, BEN, ADMIN] = ['chat read', 'read chat', 'admin chat read']

interface Shown {
  readonly conversation_id: string
  readonly title: string | null
  readonly labels: readonly string[]
  readonly owner: string
  readonly message_count: number
  readonly matches?: readonly { readonly message_id: string | null; readonly text: string }[]
}
interface Page {
  readonly conversations: readonly Shown[]
  readonly next_cursor: string | null
}

/** Each request over a connection of its own, so that every worker has its turn. */
function caller({ url }: Pick<Service, 'url'>, scopes = ADMIN) {
  const client = createClient(url, { keepAlive: false })
  const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    client.send({ method, path, headers: { 'x-scopes': scopes!, ...headers }, ...(body === undefined ? {} : { body }) })
  const fine = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const { status, text, body: answer } = await send(method, path, body)
    expect(status, text).to.be.within(200, 204)
    return answer as T
  }
  const all = async (query: string) => {
    const found: Shown[] = []
    for (let cursor = ''; ; ) {
      const page = await fine<Page>('GET', `${PATH}?${query}${cursor}`)
      found.push(...page.conversations)
      if (page.next_cursor === null) return found
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
    }
  }
  return {
    send,
    fine,
    all,
    say: async (message: string, more: object = {}) =>
      (await fine<{ conversation_id: string }>('POST', PATH, { message, ...more })).conversation_id,
    /** Searches until something is found: the index follows the turns. */
    async found(q: string, count = 1) {
      for (let left = 200; ; left--) {
        const { conversations } = await fine<Page>('GET', `${PATH}?q=${encodeURIComponent(q)}`)
        if (conversations.length >= count || left === 0) return conversations
        await sleep(50)
      }
    },
    async settled(job: string) {
      for (;;) {
        const { state, result } = await fine<{ state: string; result?: unknown }>('GET', `/api/v1/jobs/${job}`)
        if (state !== 'queued' && state !== 'running') return { state, result }
        await sleep(50)
      }
    },
  }
}

const configure = (home: string, more: object = {}) =>
  configureFew(home, { plugins: [SCOPES], server: { auth: { enabled: true } }, ...more }, NAMED)
const start = (home: string) => startService({ home, args: ['--config', join(home, 'svc.config.json')] })

/** An import of so many conversations. */
const importOf = (count: number, turns: number, word = 'imported') =>
  Array.from({ length: count }, (_, at) =>
    [
      { type: 'conversation', version: 1, title: `${word} ${at}` },
      ...Array.from({ length: turns }, (_turn, turn) => ({
        type: 'turn',
        messages: [
          { role: 'user', parts: [{ type: 'text', text: `${word} question ${turn} of ${at}` }] },
          { role: 'assistant', parts: [{ type: 'text', text: `answer ${turn}` }] },
        ],
      })),
    ]
      .map(line => JSON.stringify(line))
      .join('\n')
  ).join('\n')

/** What is stored in a home whose server has ended. */
async function stored(home: string, ids: readonly string[]) {
  await using host = await testHost([pluginFolder('store-sqlite'), pluginFolder('conversations')], {
    config: { store: { path: join(home, 'svc.db') } },
  })
  const store = host.service(Store)
  const ctx = testContext()
  const keysOf = async (collection: string) => {
    const keys: string[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await store.range(collection, { limit: 1000, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      keys.push(...page.records.map(({ key }) => key))
      cursor = page.next
      if (cursor === undefined) return keys
    }
  }
  const logs = await Promise.all(ids.map(id => store.read('conversation_turns', id, { limit: 1 }, ctx)))
  return {
    conversations: await keysOf('conversations'),
    texts: [...new Set((await keysOf('conversation_texts')).map(key => key.split('/')[0]!))],
    logs: ids.filter((_, at) => logs[at]!.length > 0),
  }
}

describe('conversations over the API, with two workers', function () {
  this.timeout(120_000)
  let service: Service
  let folder: { home: string; done: () => void; gone: Promise<void> }
  before(async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const ready = Promise.withResolvers<string>()
    const gone = inNewHome(async home => {
      await configure(home)
      ready.resolve(home)
      await promise
    })
    folder = { home: await ready.promise, done: resolve, gone }
    service = await startTwo({ home: folder.home, args: ['--config', join(folder.home, 'svc.config.json')] })
  })
  after(async () => {
    await service.stop()
    folder.done()
    await folder.gone
  })

  it('are found by each worker alike, by their owner and by an admin', async () => {
    const [ann, ben, admin] = [caller(service, ANN), caller(service, BEN), caller(service, ADMIN)]
    const id = await ann.say('The narwhal dives', { labels: ['sea'] })
    await ben.say('A narwhal surfaces')
    expect(await admin.found('narwhal', 2)).to.have.length(2)
    for (let at = 0; at < 10; at++) {
      const { conversations } = await ann.fine<Page>('GET', `${PATH}?q=narwhal`)
      expect(conversations.map(one => one.conversation_id)).to.deep.equal([id])
      expect(conversations[0]!.matches!.map(one => one.message_id)).to.have.members(['1-0', '1-1'])
      expect(await ann.all('label=sea&detail=full')).to.have.length(1)
      expect(await admin.all('q=narwhal&label=sea')).to.have.length(1)
    }
  })

  it('do not exist for others, whatever they ask', async () => {
    const [ann, ben] = [caller(service, ANN), caller(service, BEN)]
    const id = await ann.say('mine')
    const asked = [
      ['GET', `${PATH}/${id}?detail=full`],
      ['PATCH', `${PATH}/${id}`, { title: 'x' }],
      ['POST', `${PATH}/${id}/fork`, {}],
      ['GET', `${PATH}/${id}/export`],
      ['DELETE', `${PATH}/${id}`],
    ] as const
    for (const [method, path, body] of asked) {
      const theirs = await ben.send(method, path, body)
      const unknown = await ben.send(method, path.replace(id, `conv_${'0'.repeat(32)}`), body)
      expect([theirs.status, unknown.status], path).to.deep.equal([404, 404])
      expect(theirs.text.replaceAll(id, 'ID')).to.equal(unknown.text.replaceAll(`conv_${'0'.repeat(32)}`, 'ID'))
    }
    expect((await ben.send('POST', `${PATH}/${id}/hand-over`, { owner: BEN })).status).to.equal(403)
    expect((await ben.send('POST', `${PATH}/delete`, { owner: ANN })).status).to.equal(403)
    expect((await ben.send('POST', `${PATH}/delete`, { owner: '*' })).status).to.equal(403)
    const foreign = await ann.fine<Page>('GET', `${PATH}?limit=1`)
    for (let at = 0; at < 3; at++) await ann.say('more')
    const cursor = (await ann.fine<Page>('GET', `${PATH}?limit=1`)).next_cursor ?? foreign.next_cursor ?? 'x'
    const answer = await ben.send('GET', `${PATH}?cursor=${encodeURIComponent(cursor)}`)
    if (answer.status === 200) expect((answer.body as Page).conversations.filter(one => one.owner === ANN)).to.deep.equal([])
    else expect(answer.status).to.equal(400)
    expect(await ann.fine('GET', `${PATH}/${id}`)).to.include({ message_count: 2 })
  })

  it('are renamed only in the version that was read, with If-Match', async () => {
    const ann = caller(service, ANN)
    const id = await ann.say('about versions')
    const path = `${PATH}/${id}`
    const patch = (title: string, match: string, as = ann) => as.send('PATCH', path, { title }, { 'if-match': match })
    const versionOf = async (query = '') => String((await ann.send('GET', `${path}${query}`)).headers.etag)
    const read = await versionOf()
    expect(read).to.match(/^"[1-9]\d*"$/)
    expect(await versionOf('?detail=full')).to.equal(read)
    const first = await patch('One', read)
    expect([first.status, first.headers.etag], first.text).to.deep.equal([200, await versionOf()])
    for (const stale of [read, '"0"', '"x"', '"-1"', `W/${await versionOf()}`]) {
      const refused = await patch('Two', stale)
      const { error_code: code, details } = refused.body as { error_code: string; details: { field: string; hint: string } }
      expect([refused.status, code, details.field], stale).to.deep.equal([412, 'PRECONDITION_FAILED', 'If-Match'])
      expect(details.hint).to.be.a('string')
    }
    for (const bad of ['x', '"a", "b"']) expect((await patch('Two', bad)).status, bad).to.equal(400)
    expect((await patch('Two', read, caller(service, BEN))).status).to.equal(404)
    // a turn is a new version, too
    const before = await versionOf()
    await ann.say('more', { conversation_id: id })
    expect((await patch('Two', before)).status).to.equal(412)
    expect((await patch('Three', '*')).status).to.equal(200)
    expect((await ann.fine<Shown>('PATCH', path, { title: 'Four' })).title).to.equal('Four')
    // of several changes of one version, one counts
    const now = await versionOf()
    const all = await Promise.all(['a', 'b', 'c', 'd'].map(title => patch(title, now)))
    expect(all.map(({ status }) => status).toSorted((a, b) => a - b)).to.deep.equal([200, 412, 412, 412])
  })

  it('change hands, with events that name the admin', async () => {
    const [ann, ben, admin] = [caller(service, ANN), caller(service, BEN), caller(service, ADMIN)]
    const stream = await createClient(service.url, { keepAlive: false }).stream({
      method: 'GET',
      path: '/api/v1/events?types=conversation_*',
      headers: { 'x-scopes': ADMIN! },
    })
    const id = await ann.say('to be given')
    await admin.fine('POST', `${PATH}/${id}/hand-over`, { owner: BEN })
    expect(await ben.fine('GET', `${PATH}/${id}?detail=full`)).to.include({ owner: BEN })
    expect((await ann.send('GET', `${PATH}/${id}`)).status).to.equal(404)
    await ben.fine('PATCH', `${PATH}/${id}`, { labels: ['got'] })
    const seen: Record<string, unknown>[] = []
    while (seen.length < 2) {
      const event = await stream.next()
      const { type, principal, data } = (event?.data ?? {}) as Record<string, unknown>
      if (String(type).startsWith('svc.conversation_')) seen.push({ type, principal, data })
    }
    await stream.leave()
    const subject = `conversations/${id}`
    expect(seen).to.deep.include.members([
      {
        type: 'svc.conversation_handed_over',
        principal: ADMIN,
        data: { subject, before: { owner: ANN }, after: { owner: BEN } },
      },
      { type: 'svc.conversation_changed', principal: BEN, data: { subject, before: { labels: [] }, after: { labels: ['got'] } } },
    ])
  })

  it('fork into a tree of 1,000, of which no branch changes another', async () => {
    const ann = caller(service, ANN)
    const root = await ann.say('root')
    const tree = [root]
    const depth = new Map([[root, 1]])
    // each is forked from one in the first half of the tree, and then goes its own way
    for (let from = 1; from < 1000; from += 20) {
      const made = await Promise.all(
        Array.from({ length: Math.min(20, 1000 - from) }, async (_, at) => {
          const parent = tree[Math.floor((from + at) / 2) % tree.length]!
          const { conversation } = await ann.fine<{ conversation: Shown }>('POST', `${PATH}/${parent}/fork`, {
            labels: ['tree'],
            ...((from + at) % 10 === 0 ? { message: `branch ${from + at}` } : {}),
          })
          return [conversation.conversation_id, depth.get(parent)! + ((from + at) % 10 === 0 ? 1 : 0)] as const
        })
      )
      for (const [id, turns] of made) depth.set(id, turns)
      tree.push(...made.map(([id]) => id))
    }
    const listed = await ann.all('label=tree&limit=200&detail=full')
    expect(listed).to.have.length(999)
    for (const { conversation_id: id, message_count: count } of listed) expect(count).to.equal(2 * depth.get(id)!)
    await ann.fine('DELETE', `${PATH}/${root}`)
    const { messages } = await ann.fine<{ messages: { content: string }[] }>('GET', `${PATH}/${tree[999]!}`)
    expect(messages[0]!.content).to.equal('root')
    const { job_id: job } = await ann.fine<{ job_id: string }>('POST', `${PATH}/delete`, { label: 'tree' })
    expect(await ann.settled(job)).to.deep.equal({ state: 'completed', result: { deleted: 999 } })
    const { entries } = await ann.fine<{ entries: readonly { message: string }[] }>('GET', `/api/v1/jobs/${job}/log`)
    expect(entries[0]!.message).to.match(/^deleting conversations of .+, with the label tree$/)
    expect(entries.at(-1)!.message).to.equal('999 conversations deleted')
    expect(await ann.all('label=tree')).to.deep.equal([])
  })

  it('are deleted by label, age and search, only those of the caller', async () => {
    const [ann, ben] = [caller(service, ANN), caller(service, BEN)]
    const content = importOf(5, 1, 'walrus')
    for (const one of [ann, ben]) await one.fine('POST', `${PATH}/import`, { content, labels: ['bulk'] })
    const kept = await ann.say('not a seal', { labels: ['bulk'] })
    await ann.found('walrus', 5)
    const run = async (filter: object) => {
      const { job_id: job } = await ann.fine<{ job_id: string }>('POST', `${PATH}/delete`, filter)
      return (await ann.settled(job)).result
    }
    expect(await run({ label: 'bulk', before: '2020-01-01T00:00:00Z' })).to.deep.equal({ deleted: 0 })
    expect(await run({ label: 'none', q: 'walrus' })).to.deep.equal({ deleted: 0 })
    expect(await run({ label: 'bulk', q: 'walrus', before: '2999-01-01T00:00:00Z' })).to.deep.equal({ deleted: 5 })
    expect((await ann.all('label=bulk')).map(one => one.conversation_id)).to.deep.equal([kept])
    expect(await ben.all('label=bulk')).to.have.length(5)
  })

  it('are listed, searched, forked, exported, imported and deleted by commands', async () => {
    const { home } = folder
    const svc = async (...args: string[]) => {
      const header = args[0] === 'conversations' ? ['-H', `x-scopes: ${ANN}`, '--url', service.url] : []
      return runSvc([...args, ...header], { home, share: true })
    }
    const fine = async (...args: string[]) => {
      const { code, out, err } = await svc('conversations', ...args)
      expect(code, err).to.equal(0)
      return { out, err }
    }
    const id = await caller(service, ANN).say('/tool current_time {}', { title: 'Capybara', labels: ['cli'] })
    await caller(service, ANN).found('capybara')
    const steering = await caller(service, ANN).say('a\u001b[2Jb', { title: 'x' })
    expect((await fine('show', steering)).out).to.include('a\\u{1b}[2Jb')
    expect((await fine('export', steering, '--format', 'markdown')).out).not.to.include('\u001b')
    expect((await fine('list', '--label', 'cli')).out).to.match(new RegExp(`^${id} .* 2 +Capybara +cli$`, 'm'))
    expect((await fine('search', 'capybara')).out).to.include(`${id}  Capybara`)
    const shown = (await fine('show', id)).out
    expect(shown).to.match(/^# Capybara$/m)
    expect(shown).to.match(/^\[1-1\] assistant · local-1 · \d+\+\d+ tokens$/m)
    expect(shown).to.match(/^→ current_time \{\}$/m)
    expect(JSON.parse((await fine('show', id, '--json')).out))
      .to.have.property('messages')
      .with.length(4)
    const fork = await fine('fork', id, '--at', '1-0', '--message', 'Branched')
    expect(fork.out).to.match(/^conv_[0-9a-f]{32}\n$/)
    expect(fork.err).to.include('You said: Branched')
    const file = join(home, 'all.jsonl')
    await fine('export', '--label', 'cli', '--output', file)
    expect((await readFile(file, 'utf8')).split('\n').filter(line => line.startsWith('{"type":"conversation"'))).to.have.length(2)
    expect((await fine('export', id, '--format', 'markdown')).out).to.match(/^# Capybara\n/)
    const imported = await fine('import', file, '--label', 'again')
    expect(imported.out.trim().split('\n')).to.have.length(2)
    await writeFile(file, '{"type":"conversation","version":1}\n{"type":"turn","messages":[{"role":"root","parts":[]}]}\n')
    const lie = await svc('conversations', 'import', file)
    expect([lie.code, lie.err]).to.deep.include(1)
    expect(lie.err).to.include('line 2')
    const completions = '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}\n'
    await writeFile(file, completions)
    expect((await svc('conversations', 'import', file)).err).to.include('import it with --format chat_completions')
    await fine('import', file, '--format', 'chat_completions')
    await writeFile(file, '{"type":"conversation","version":1}\n')
    expect((await svc('conversations', 'import', file, '--format', 'chat_completions')).err).to.include('--format jsonl')
    await fine('delete', id)
    expect((await svc('conversations', 'show', id)).code).to.equal(1)
    expect((await svc('conversations', 'delete', '--label', 'again')).err).to.include('--yes')
    const job = (await fine('delete', '--label', 'again', '--yes')).out.trim()
    expect(await caller(service, ANN).settled(job)).to.deep.equal({ state: 'completed', result: { deleted: 2 } })
  })
})

describe('conversations after kill -9', function () {
  this.timeout(180_000)

  it('are imported whole or not at all', () =>
    inNewHome(async home => {
      await configure(home)
      const content = importOf(300, 20)
      let [whole, none] = [0, 0]
      for (const delay of [5, 60, 120, 200, 350, 60_000]) {
        const service = await start(home)
        const before = (await caller(service).all('limit=200')).length
        const asked = caller(service)
          .send('POST', `${PATH}/import`, { content })
          .then(({ status }) => status)
          .catch(() => undefined)
        await Promise.race([sleep(delay, undefined, { ref: false }), asked])
        await service.kill()
        const status = await asked
        await using again = await start(home)
        const after = (await caller(again).all('limit=200')).length - before
        expect(after, `after ${delay} ms`).to.be.oneOf(status === 201 ? [300] : [0, 300])
        if (after === 300) whole += 1
        else none += 1
        const listed = await caller(again).all('limit=200&detail=full')
        for (const { message_count: count } of listed) expect(count).to.equal(40)
        // the texts of an import that was acknowledged are found, although nothing of them was written yet
        if (after === 300) expect(await caller(again).found('"question 19 of 299"')).not.to.deep.equal([])
        await again.stop()
      }
      expect(whole, `${none} without`).to.be.above(0)
    }))

  it('are deleted to the last by the job that was running, and nothing of them is left', () =>
    inNewHome(async home => {
      await configure(home)
      let ids: string[] = []
      let job = ''
      {
        const service = await start(home)
        const admin = caller(service)
        const made = await admin.fine<Page>('POST', `${PATH}/import`, { content: importOf(800, 3), labels: ['old'] })
        await admin.fine('POST', `${PATH}/import`, { content: importOf(10, 3, 'other') })
        ids = made.conversations.map(one => one.conversation_id)
        await admin.found('imported')
        job = (await admin.fine<{ job_id: string }>('POST', `${PATH}/delete`, { label: 'old' })).job_id
        // somewhere in the middle
        for (;;) {
          const left = (await admin.all('label=old&limit=200')).length
          if (left < 700) break
        }
        await service.kill()
      }
      const half = await stored(home, ids)
      const left = half.conversations.filter(id => ids.includes(id))
      expect(left.length).to.be.within(1, 799)
      // what is left is whole, what is deleted is deleted whole
      expect(half.logs).to.have.members(left)
      const service = await start(home)
      expect(await caller(service).settled(job)).to.have.property('state', 'completed')
      expect(await caller(service).all('label=old')).to.deep.equal([])
      expect(await caller(service).all('limit=200')).to.have.length(10)
      // the texts follow
      let rest = await stored(home, ids)
      for (let tries = 60; tries > 0 && rest.texts.length !== 10; tries--) {
        await sleep(500)
        rest = await stored(home, ids)
      }
      await service.stop()
      expect(rest.conversations).to.have.length(10)
      expect(rest.logs).to.deep.equal([])
      expect(rest.texts).to.have.members(rest.conversations)
    }))

  it('are found, although the server died before it had indexed them', () =>
    inNewHome(async home => {
      await configure(home)
      const service = await start(home)
      const id = await caller(service).say('The last words of an albatross')
      await service.kill()
      await using again = await start(home)
      expect((await caller(again).found('albatross'))[0]?.conversation_id).to.equal(id)
    }))
})

describe('old conversations', function () {
  this.timeout(60_000)

  it('are deleted by age and by label', () =>
    inNewHome(async home => {
      // 2 s
      const days = 2 / 86_400
      await configure(home, { conversations: { keep_days: days, keep_labels: { keep: 0, longer: 30 } } })
      await using service = await start(home)
      const admin = caller(service)
      await admin.say('gone')
      const kept = [await admin.say('kept', { labels: ['keep'] }), await admin.say('kept', { labels: ['a', 'longer'] })]
      for (;;) {
        const listed = (await admin.all('')).map(one => one.conversation_id)
        expect(listed).to.include.members(kept)
        if (listed.length === 2) break
        await sleep(100)
      }
      await service.stop()
    }))

  it('of the first version of the space are read, continued and found', () =>
    inNewHome(async home => {
      const path = join(home, 'svc.db')
      const old = `conv_${'a'.repeat(32)}`
      await writeOld(path, old, 1)
      {
        await configure(home)
        await using server = await start(home)
        expect((await caller(server).found('pelican'))[0]?.conversation_id).to.equal(old)
        await server.stop()
      }
      await using host = await testHost([pluginFolder('store-sqlite'), pluginFolder('conversations')], {
        config: { store: { path } },
      })
      const service = host.service(Conversations)
      const ctx = testContext({ principal: { id: 'ann', scopes: [] } })
      expect(await service.get(old, ctx)).to.deep.include({
        messageCount: 2,
        messages: [
          { role: 'user', content: 'an old pelican' },
          { role: 'assistant', content: 'yes' },
        ],
      })
      const { turns } = await service.turns(old, { from: 1, limit: 9 }, ctx)
      expect(turns[0]).not.to.have.property('at')
      expect(turns[0]!.messages[1]).not.to.have.property('usage')
      const open = await service.begin({ conversationId: old, waitMs: 0, history: 5 }, ctx)
      expect(open.turns[0]!.map(({ role }) => role)).to.deep.equal(['user', 'assistant'])
      await service.append(open.ticket, [{ role: 'user', parts: [{ type: 'text', text: 'and a new one' }] }], [], ctx)
      await service.end(open.ticket, ctx)
      expect((await service.get(old, ctx)).messageCount).to.equal(3)
    }))

  it('of a later version are refused', () =>
    inNewHome(async home => {
      const path = join(home, 'svc.db')
      await writeOld(path, `conv_${'a'.repeat(32)}`, 99)
      const failure = await testHost([pluginFolder('store-sqlite'), pluginFolder('conversations')], {
        config: { store: { path } },
      }).then(
        async host => {
          await host.close()
          return 'it started'
        },
        (error: unknown) => JSON.stringify(error, Object.getOwnPropertyNames(Object(error)))
      )
      expect(failure).to.include('has version 99, but this program supports only version 2')
    }))
})

/** Writes a conversation as the first version of the space did. */
async function writeOld(path: string, id: string, version: number): Promise<void> {
  await using host = await testHost([pluginFolder('store-sqlite')], { config: { store: { path } } })
  const store = host.service(Store)
  const ctx = testContext()
  const indexes = { by_owner: ['owner', 'updated'], by_updated: ['updated'] }
  await store.open(
    { name: 'conversations', version, collections: { conversations: { indexes } }, logs: ['conversation_turns'] },
    ctx
  )
  const at = '2026-01-31T12:00:00.000Z'
  const said = (role: string, text: string) => ({ role, parts: [{ type: 'text', text }] })
  await store.batch(
    [
      {
        op: 'put',
        collection: 'conversations',
        key: id,
        value: { owner: 'ann', created: at, updated: at, count: 2, turns: 1, bytes: 17 },
      },
      { op: 'append', log: 'conversation_turns', id, values: [[said('user', 'an old pelican'), said('assistant', 'yes')]] },
    ],
    {},
    ctx
  )
}

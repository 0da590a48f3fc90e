import { execFile } from 'node:child_process'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { systemContext } from '@svc/core'
import { testHost, toolKit } from '@svc/testing'
import { expect } from 'chai'
import { openSearch, places, refusal } from './support/search.ts'

const SAMPLE = {
  'a.txt': 'one\nneedle two\nthree\r\nNeedle (x)\n',
  'src/b.ts': 'const needle = 1\n',
  'src/deep/c.md': 'no\nneedle',
  'build/d.ts': 'needle built',
  '.gitignore': 'build/\n',
}

/** Lines without order: an expression that counts is a thousand states in each. */
const HARD =
  `${Array.from({ length: 5000 }, (_, at) => 'abcdefghijklm'[(Math.imul(at + 7, 2654435761) >>> 16) & 7]).join('')}\n`.repeat(300)

describe('search_text, by the tool kit', () => {
  const open = async () => {
    const { tool, close } = await openSearch({ ...SAMPLE, 'src/much.log': HARD, '.ignore': 'much.log' })
    return { name: 'search_text', tool, close }
  }
  const cases = toolKit(open, {
    good: [
      { args: { query: 'needle', glob: '*.txt', path: 'src' } },
      { args: { query: 'n[e]+dle', regex: true, ignore_case: true, context: 2 } },
    ],
    bad: [
      { args: { query: '(', regex: true }, message: /is not a valid query: .*missing closing/ },
      { args: { query: '(?=a)', regex: true }, message: /is not a valid query/ },
      { args: { query: 'a\nb' }, message: /within a line/ },
      { args: { query: 'a', glob: '{' }, message: /not a valid pattern/ },
      { args: { query: 'a', path: '../beside' }, message: /outside/ },
      { args: { query: 'a', path: 'leak' }, message: /outside/ },
      { args: { query: 'a', path: 'leak.txt' }, message: /outside/ },
      { args: { query: 'a', path: '/etc/passwd' }, message: /outside/ },
      { args: { query: 'a', path: '/proc/self/root/etc' }, message: /outside/ },
      { args: { query: 'a', path: 'a\0' }, message: /zero byte/ },
      { args: { query: 'a', path: 'x'.repeat(4000) }, message: /too long/ },
      { args: { query: 'a', path: 'nowhere' }, message: /does not exist/ },
      { args: { query: '' } },
      { args: {} },
    ],
    slow: { args: { query: '[a-f].{999}[n-z]', regex: true, ignored: true } },
    concurrent: 20,
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})

describe('search_text', () => {
  it('finds a text as it is written, and says where', async () => {
    await using files = await openSearch(SAMPLE)
    expect(await files.search({ query: 'needle' })).to.deep.equal({
      path: '.',
      matches: [
        { path: 'a.txt', line: 2, column: 1, text: 'needle two' },
        { path: 'src/b.ts', line: 1, column: 7, text: 'const needle = 1' },
        { path: 'src/deep/c.md', line: 2, column: 1, text: 'needle' },
      ],
      files_searched: 4,
      truncated: false,
    })
    expect(places(await files.search({ query: '(x)' }))).to.deep.equal(['a.txt:4'])
    expect(places(await files.search({ query: 'NEEDLE (X)', ignore_case: true }))).to.deep.equal(['a.txt:4'])
  })

  it('finds by a regular expression', async () => {
    await using files = await openSearch(SAMPLE)
    expect(places(await files.search({ query: '^needle\\b.*o$', regex: true }))).to.deep.equal(['a.txt:2'])
    expect(places(await files.search({ query: '^needle \\(', regex: true, ignore_case: true }))).to.deep.equal(['a.txt:4'])
  })

  it('shows lines around, and writes it as grep does', async () => {
    await using files = await openSearch(SAMPLE)
    const { matches } = await files.search({ query: 'Needle', context: 1 })
    expect(matches).to.deep.equal([{ path: 'a.txt', line: 4, column: 1, text: 'Needle (x)', before: ['three'], after: [''] }])
    const { content } = await files.tool.call({ query: 'two', context: 1 }, files.ctx)
    expect(content).to.deep.equal([{ type: 'text', text: 'a.txt-1- one\na.txt:2: needle two\na.txt-3- three\n--' }])
  })

  it('searches a folder, a file, or the files that fit a pattern', async () => {
    await using files = await openSearch(SAMPLE)
    expect(places(await files.search({ query: 'needle', path: 'src' }))).to.deep.equal(['src/b.ts:1', 'src/deep/c.md:2'])
    expect(places(await files.search({ query: 'needle', path: 'src/b.ts' }))).to.deep.equal(['src/b.ts:1'])
    expect(places(await files.search({ query: 'needle', glob: '*.{md,txt}' }))).to.deep.equal(['a.txt:2', 'src/deep/c.md:2'])
    expect(places(await files.search({ query: 'needle', path: 'src', glob: 'deep/**' }))).to.deep.equal(['src/deep/c.md:2'])
  })

  it('passes over what ignore files leave out, unless it is asked otherwise or the file is named', async () => {
    await using files = await openSearch(SAMPLE)
    expect(places(await files.search({ query: 'built' }))).to.deep.equal([])
    expect(places(await files.search({ query: 'built', ignored: true }))).to.deep.equal(['build/d.ts:1'])
    expect(places(await files.search({ query: 'built', path: 'build/d.ts' }))).to.deep.equal(['build/d.ts:1'])
  })

  it('passes over binary, large and special files, and says how many', async () => {
    const binary = Buffer.from([110, 0, ...Buffer.from('needle')])
    await using files = await openSearch(
      { binary, 'large.txt': 'needle'.repeat(1000), 'a.txt': 'needle' },
      { max_file_bytes: 1024 }
    )
    await promisify(execFile)('mkfifo', [files.at('root', 'pipe')])
    const found = await files.search({ query: 'needle' })
    expect(places(found)).to.deep.equal(['a.txt:1'])
    expect(found.note).to.equal('Skipped files: 1 binary, 1 too large.')
  })

  it('never leaves the roots', async () => {
    await using files = await openSearch(SAMPLE)
    expect(places(await files.search({ query: 'outside', ignored: true }))).to.deep.equal([])
  })

  it('never reads outside while a folder is swapped for a link under its hands', async () => {
    await using files = await openSearch({ 'swap/secret.txt': 'harmless needle' })
    let going = true
    const swap = (async () => {
      while (going) {
        await rename(files.at('root', 'swap'), files.at('root', 'aside'))
        await symlink(files.at('beside'), files.at('root', 'swap'))
        await rm(files.at('root', 'swap'))
        await rename(files.at('root', 'aside'), files.at('root', 'swap'))
      }
    })()
    const seen = new Set<string>()
    for (let times = 0; times < 300; times++)
      for (const path of ['.', 'swap', 'swap/secret.txt']) {
        const reported = await files.search({ query: 'needle', path }).catch((error: { code: string }) => error.code)
        for (const text of typeof reported === 'string' ? [reported] : reported.matches.map(match => match.text)) seen.add(text)
      }
    going = false
    await swap
    // PATH_KIND: the folder became a link between the look at it and its opening
    for (const item of seen) expect(item).to.be.oneOf(['harmless needle', 'PATH_OUTSIDE', 'PATH_MISSING', 'PATH_KIND'])
    expect(seen).to.include('harmless needle').and.include('PATH_OUTSIDE')
  })

  it('ends at its limits with what it found, and says so', async () => {
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`${at}.txt`, 'needle\nneedle\n']))
    await using few = await openSearch(many, { max_matches: 3 })
    expect(await few.search({ query: 'needle' })).to.deep.include({
      truncated: true,
      note: 'More lines match; these are the first 3.',
    })
    await using short = await openSearch(many, { max_entries: 4 })
    expect((await short.search({ query: 'needle' })).note).to.include('ended after 4 entries')
    await using little = await openSearch(
      { 'a.txt': 'x'.repeat(1000), 'b.txt': 'x'.repeat(1000), 'c.txt': 'x' },
      { max_bytes: 1024 }
    )
    expect(await little.search({ query: 'needle' })).to.include({ files_searched: 2, truncated: true })
  })

  it('takes no longer than it may, however much there is to search', async () => {
    await using files = await openSearch({ 'a.txt': HARD }, { timeout_ms: 100 })
    const found = await files.search({ query: '[a-f].{999}[n-z]', regex: true })
    expect(found.truncated).to.equal(true)
    expect(found.note).to.include('at the time limit of a call')
  })

  it('is not held up by expressions that make other engines run for ever', async () => {
    await using files = await openSearch({ 'a.txt': `${'a'.repeat(50_000)}!\n`.repeat(5) })
    for (const query of ['(a+)+$', '(a|aa)+$', '(a*)*b', '(.*a){20}$', '(a?){500}b'])
      expect(places(await files.search({ query, regex: true })), query).to.be.an('array')
    expect((await refusal(files.search({ query: '((a{100}){100}){100}', regex: true }))).message).to.include('repeat count')
  })

  it('lets others work while it searches', async () => {
    await using files = await openSearch({ 'a.txt': 'some words of a line without it\n'.repeat(100_000) })
    let turns = 0
    const count = setInterval(() => turns++, 0)
    await files.search({ query: 'n[aeiou]{2}dle$', regex: true })
    clearInterval(count)
    expect(turns).to.be.above(3)
  })

  it('searches a very long line by an expression in its beginning only, and says so', async () => {
    await using files = await openSearch({ 'a.txt': `${' '.repeat(9000)}needle` })
    expect(places(await files.search({ query: 'needle' }))).to.deep.equal(['a.txt:1'])
    expect((await files.search({ query: 'need.e', regex: true })).note).to.equal(
      'Very long lines of which only the start was searched: 1. No matches.'
    )
  })

  it('shows the part of a long line that fits, and characters whole', async () => {
    await using files = await openSearch({ 'a.txt': `${'𝕏'.repeat(1000)}needle${'𝕏'.repeat(1000)}` })
    const [match] = (await files.search({ query: 'needle' })).matches
    expect(match!.text).to.have.length.below(410).and.include('needle')
    expect(match!.text.isWellFormed()).to.equal(true)
  })

  it('searches the folders of the other tools, several ones by name, or its own', async () => {
    await using both = await openSearch({ 'a.txt': 'needle' }, {}, ['one', 'two'])
    await writeFile(both.at('two', 'b.txt'), 'needle')
    expect(places(await both.search({ query: 'needle' }))).to.deep.equal(['one/a.txt:1', 'two/b.txt:1'])
    expect(places(await both.search({ query: 'needle', glob: 'two/*' }))).to.deep.equal(['two/b.txt:1'])
    await mkdir(both.at('own'))
    await writeFile(both.at('own', 'c.txt'), 'needle')
    await using own = await openSearch({ 'a.txt': 'needle' }, { roots: [both.at('own')] })
    expect(places(await own.search({ query: 'needle' }))).to.deep.equal(['c.txt:1'])
  })

  it('works without anybody who tells where: in the working directory', async () => {
    await using host = await testHost([new URL('..', import.meta.url)])
    expect(host.report().plugins.length).to.be.above(0)
  })

  it('ends when it is aborted', async () => {
    await using files = await openSearch({ 'a.txt': HARD })
    const controller = new AbortController()
    const work = refusal(files.tool.call({ query: '[a-f].{999}[n-z]', regex: true }, systemContext(controller.signal)))
    setImmediate(() => controller.abort(new Error('enough')))
    expect((await work).message).to.equal('enough')
  })
})

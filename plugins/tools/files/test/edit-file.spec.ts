import { execFile } from 'node:child_process'
import { chmod, stat, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { editBytes } from '../src/edit-file.ts'
import { fields, openFiles, refusal, sample, text } from './support/files.ts'

describe('edit_file', () => {
  it('replaces a text that is there once', async () => {
    await using files = await sample()
    await chmod(files.at('root', 'a.txt'), 0o600)
    expect(await fields(files.edit({ path: 'a.txt', old_text: 'two\nthree', new_text: '$& 2' }))).to.deep.equal({
      path: 'a.txt',
      replacements: 1,
      line: 2,
      bytes: 9,
    })
    expect(await text(files.at('root', 'a.txt'))).to.equal('one\n$& 2\n')
    expect((await stat(files.at('root', 'a.txt'))).mode & 0o777).to.equal(0o600)
  })

  it('says how often and in which lines a text is that is there several times, and replaces all on request', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'a.txt'), 'x = 1\ny\nx = 2\n')
    expect((await refusal(files.edit({ path: 'a.txt', old_text: 'x = ', new_text: 'z' }))).message).to.match(
      /2 times \(lines 1, 3\)/
    )
    expect(await fields(files.edit({ path: 'a.txt', old_text: 'x = ', new_text: 'z', all: true }))).to.include({
      replacements: 2,
    })
    expect(await text(files.at('root', 'a.txt'))).to.equal('z1\ny\nz2\n')
  })

  it('shows the lines that are near a text that is not there', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'a.ts'), 'function a() {\n\treturn  1\n}\n')
    const { message } = await refusal(files.edit({ path: 'a.ts', old_text: '  return 1', new_text: '' }))
    expect(message).to.include('Similar lines, by line number:\n2: \treturn  1')
    await writeFile(files.at('root', 'dos.txt'), 'a\r\nb\r\n')
    expect((await refusal(files.edit({ path: 'dos.txt', old_text: 'a\nb', new_text: '' }))).message).to.include('\\r\\n')
  })

  it('makes all of several edits of one file that come at once', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'a.txt'), Array.from({ length: 20 }, (_, at) => `line ${at};\n`).join(''))
    await Promise.all(
      Array.from({ length: 20 }, (_, at) => files.edit({ path: 'a.txt', old_text: `line ${at};`, new_text: `done ${at};` }))
    )
    expect(await text(files.at('root', 'a.txt'))).to.equal(Array.from({ length: 20 }, (_, at) => `done ${at};\n`).join(''))
  })

  it('refuses binary files, other encodings, huge and special files, and what would change nothing', async () => {
    await using files = await openFiles({ max_write_bytes: 1024 })
    await writeFile(files.at('root', 'binary'), Buffer.from([65, 0, 65]))
    await writeFile(files.at('root', 'latin'), Buffer.from([65, 0xfc]))
    await writeFile(files.at('root', 'huge'), 'A'.repeat(2000))
    await promisify(execFile)('mkfifo', [files.at('root', 'pipe')])
    const problems = {
      binary: /binary file/,
      latin: /not valid UTF-8/,
      huge: /2000 bytes/,
      pipe: /neither a file/,
      none: /does not exist/,
    }
    for (const [path, words] of Object.entries(problems))
      expect((await refusal(files.edit({ path, old_text: 'A', new_text: 'B' }))).message).to.match(words)
    expect((await refusal(files.edit({ path: 'latin', old_text: 'A', new_text: 'A' }))).message).to.match(/are equal/)
  })

  it('refuses an edit that would make too large a file before it builds it', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'a.txt'), 'a'.repeat(4_190_000))
    await writeFile(files.at('root', 'lines.txt'), 'line\n'.repeat(3000))
    const before = process.resourceUsage().maxRSS
    const bytes = { 'a.txt': 4_190_000 * 120, 'lines.txt': 3000 * 170_001 }
    for (const [path, old_text, new_text] of [
      ['a.txt', 'a', 'b'.repeat(120)],
      ['lines.txt', 'line', 'b'.repeat(170_000)],
    ] as const) {
      const { message } = await refusal(files.edit({ path, old_text, new_text, all: true }))
      expect(message).to.include(`would have ${bytes[path]} bytes`)
    }
    // kilobytes
    expect(process.resourceUsage().maxRSS - before).to.be.below(200_000)
    expect((await stat(files.at('root', 'a.txt'))).size).to.equal(4_190_000)
  })

  it('lets others work while it replaces millions of places, or looks for what is near', async () => {
    const { signal } = new AbortController()
    const edit = { path: 'a', oldText: 'a', newText: 'b', all: true }
    const bytes = Buffer.alloc(4_000_000, 'a')
    const { value, turns } = await turnsDuring(editBytes(bytes, edit, 4_194_304, signal))
    expect(value.bytes.equals(Buffer.alloc(4_000_000, 'b'))).to.equal(true)
    expect(turns).to.be.above(2)
    const empty = await turnsDuring(
      refusal(editBytes(Buffer.alloc(4_000_000, '\n'), { ...edit, oldText: 'x' }, 4_194_304, signal))
    )
    expect(empty.turns).to.be.above(2)
  })

  it('stops amid a long edit when its caller aborts', async () => {
    const controller = new AbortController()
    const edit = { path: 'a', oldText: 'a', newText: 'b', all: true }
    setImmediate(() => controller.abort(new Error('enough')))
    const { message } = await refusal(editBytes(Buffer.alloc(4_000_000, 'a'), edit, 4_194_304, controller.signal))
    expect(message).to.equal('enough')
  })

  it('never cuts a character in two', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'a.txt'), 'a 😀 b')
    const half = '😀'.slice(0, 1)
    expect((await refusal(files.edit({ path: 'a.txt', old_text: half, new_text: '' }))).code).to.equal('TEXT_INVALID')
    expect((await refusal(files.edit({ path: 'a.txt', old_text: 'a', new_text: half }))).code).to.equal('TEXT_INVALID')
    await files.edit({ path: 'a.txt', old_text: '😀', new_text: 'ö' })
    expect(await text(files.at('root', 'a.txt'))).to.equal('a ö b')
  })

  it('keeps a byte order mark and line ends', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'a.txt'), '\ufeffone\r\ntwo\r\n')
    await files.edit({ path: 'a.txt', old_text: 'one', new_text: '1' })
    expect(await text(files.at('root', 'a.txt'))).to.equal('\ufeff1\r\ntwo\r\n')
  })

  it('never edits outside', async () => {
    await using files = await sample()
    for (const path of ['leak.txt', 'leak/secret.txt', '../beside/secret.txt', files.at('beside', 'secret.txt')])
      expect((await refusal(files.edit({ path, old_text: 'secret', new_text: '' }))).code).to.equal('PATH_OUTSIDE')
    expect(await text(files.at('beside', 'secret.txt'))).to.equal('the secret')
  })
})

/** What comes of a work, and how often others had their turn meanwhile. */
async function turnsDuring<T>(work: Promise<T>): Promise<{ value: T; turns: number }> {
  let [turns, going] = [0, true]
  const next = () => {
    turns++
    if (going) setImmediate(next)
  }
  setImmediate(next)
  const value = await work
  going = false
  return { value, turns }
}

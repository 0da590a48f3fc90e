import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import { systemContext } from '@svc/core'
import { expect } from 'chai'
import { openFiles, read, refusal, sample } from './support/files.ts'

describe('read_file', () => {
  it('reads a file whole, and tells its size', async () => {
    await using files = await sample()
    expect(await read(files.read({ path: 'a.txt' }))).to.deep.equal({
      path: 'a.txt',
      content: 'one\ntwo\nthree\n',
      size: 14,
      first_line: 1,
      lines: 3,
      truncated: false,
    })
  })

  it('reads some lines, and says where to go on', async () => {
    await using files = await sample()
    const some = await read(files.read({ path: 'a.txt', offset: 2, limit: 1 }))
    expect(some).to.include({
      content: 'two\n',
      first_line: 2,
      lines: 1,
      truncated: true,
      next_offset: 3,
      note: 'Lines 2 to 2; continue with offset 3.',
    })
    expect(await read(files.read({ path: 'a.txt', offset: 3 }))).to.include({ content: 'three\n', truncated: false })
    expect((await read(files.read({ path: 'a.txt', offset: 9 }))).note).to.include('ends before line 9')
  })

  it('cuts at its limit between characters, and reads on from there', async () => {
    await using files = await openFiles({ max_bytes: 1024 })
    await writeFile(files.at('root', 'long.txt'), `${'ä€𝕏'.repeat(60)}\n${'ä€𝕏'.repeat(60)}\nend`)
    const first = await read(files.read({ path: 'long.txt' }))
    expect(first).to.include({ truncated: true, next_offset: 2, lines: 2 })
    expect(first.content).to.not.include('\ufffd')
    expect(first.note).to.match(/^Truncated in line 2/)
    expect((await read(files.read({ path: 'long.txt', offset: 2 }))).content).to.equal(`${'ä€𝕏'.repeat(60)}\nend`)
  })

  it('tells a line that is longer than one call returns', async () => {
    await using files = await openFiles({ max_bytes: 1024 })
    await writeFile(files.at('root', 'line.txt'), 'x'.repeat(200_000))
    const cut = await read(files.read({ path: 'line.txt' }))
    expect(cut.content).to.have.lengthOf(1024)
    expect(cut.note).to.equal('Line 1 is truncated, because a call returns no more.')
  })

  it('finds lines far behind its limit without holding what is before them', async () => {
    await using files = await openFiles({ max_bytes: 1024 })
    await writeFile(files.at('root', 'many.txt'), Array.from({ length: 100_000 }, (_, at) => `line ${at + 1}\n`).join(''))
    expect(await read(files.read({ path: 'many.txt', offset: 99_999 }))).to.include({
      content: 'line 99999\nline 100000\n',
      truncated: false,
    })
  })

  it('is not worn out by a huge file', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'huge.txt'), `${'word '.repeat(100_000)}\n`)
    await truncate(files.at('root', 'huge.txt'), 5_000_000_000)
    expect(await read(files.read({ path: 'huge.txt' }))).to.include({ truncated: true, size: 5_000_000_000 })
  })

  it('shows bytes that are no UTF-8 as such, and takes a byte order mark off', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'latin.txt'), Buffer.from([0x47, 0x72, 0xfc, 0xdf, 0x65]))
    await writeFile(files.at('root', 'bom.txt'), '\ufeffhello')
    expect(await read(files.read({ path: 'latin.txt' }))).to.deep.include({
      content: 'Gr\ufffd\ufffde',
      note: 'Bytes that are not valid UTF-8 are shown as \ufffd.',
    })
    expect((await read(files.read({ path: 'bom.txt' }))).content).to.equal('hello')
  })

  it('says that an empty file is empty', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'empty.txt'), '')
    expect(await read(files.read({ path: 'empty.txt' }))).to.include({ content: '', lines: 0, note: 'The file is empty.' })
  })

  it('does not wait for a pipe, a socket or a device', async () => {
    await using files = await openFiles()
    await promisify(execFile)('mkfifo', [files.at('root', 'pipe')])
    const server = createServer().listen(files.at('root', 'socket'))
    await once(server, 'listening')
    for (const path of ['pipe', 'socket'])
      expect((await refusal(files.read({ path }))).message).to.include('neither a file nor a directory')
    server.close()
    await using devices = await openFiles({ roots: ['/dev'] })
    for (const path of ['zero', 'tty', 'null'])
      expect((await refusal(devices.read({ path }))).code).to.be.oneOf(['PATH_KIND', 'PATH_MISSING'])
  })

  it('ends in the middle of a file when it is aborted', async () => {
    await using files = await openFiles()
    await writeFile(files.at('root', 'huge.txt'), 'x')
    await truncate(files.at('root', 'huge.txt'), 500_000_000_000)
    await writeFile(files.at('root', 'huge.txt'), 'some text without an end'.repeat(10_000), { flag: 'r+' })
    const controller = new AbortController()
    const reading = refusal(
      files.tool('read_file').call({ path: 'huge.txt', offset: 1_000_000 }, systemContext(controller.signal))
    )
    setImmediate(() => controller.abort(new Error('enough')))
    expect((await reading).message).to.equal('enough')
  })
})

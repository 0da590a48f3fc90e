import { execFileSync } from 'node:child_process'
import { appendFile, chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openHistory } from '../src/commands/talk/lines.ts'

describe('the history of svc chat', () => {
  let home: string
  let file: string
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-history-'))
    file = join(home, 'history')
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  it('keeps what two chats add, newest first, no line twice in a row', async () => {
    const [first, two] = [openHistory(home), openHistory(home)]
    first.add('a')
    two.add('b')
    first.add('c')
    first.add('c')
    first.add(' blank first')
    first.add('x'.repeat(10_001))
    expect(openHistory(home).lines).to.deep.equal(['c', 'b', 'a'])
  })

  it('is for its owner alone, also where it was open to others', async () => {
    await writeFile(file, 'a\n', { mode: 0o644 })
    await chmod(file, 0o644)
    openHistory(home)
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
    await rm(file)
    openHistory(home).add('b')
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
  })

  it('is cut to its last 1000 lines when it has twice as many, or 1 MiB', async () => {
    const lines = Array.from({ length: 2_500 }, (_, at) => `line ${at}`)
    await writeFile(file, `${lines.join('\n')}\n`)
    const { lines: kept } = openHistory(home)
    expect([kept.length, kept[0], kept.at(-1)]).to.deep.equal([1_000, 'line 2499', 'line 1500'])
    expect((await readFile(file, 'utf8')).split('\n')).to.have.length(1_001)
    await appendFile(file, `${`${'y'.repeat(9_000)}\n${'z'.repeat(9_000)}\n`.repeat(100)}`)
    openHistory(home)
    expect((await stat(file)).size).to.be.below(1024 * 1024 + 1)
  })

  it('begins with none where the file is a folder, a pipe, or holds what a terminal would obey', async () => {
    await writeFile(file, 'good\n\u001b[2Jbad\n\0\n')
    expect(openHistory(home).lines).to.deep.equal(['good'])
    await rm(file)
    await mkdir(file)
    const folder = openHistory(home)
    folder.add('a')
    expect(folder.lines).to.deep.equal([])
    await rm(file, { recursive: true })
    execFileSync('mkfifo', [file])
    const pipe = openHistory(home)
    pipe.add('a')
    expect(pipe.lines).to.deep.equal([])
  })
})

import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { openLog } from '../cli/src/log-output.ts'
import { temporaryFolder } from '../plugins/storage/sqlite/test/support.ts'
import { removeDisk, smallDisk } from '../plugins/storage/sqlite/test/broken-files.ts'
import { skipBecause } from './support/needs.ts'

const PADDING = 'x'.repeat(1000)

describe('the log of a worker on a disk that is full for a while', function () {
  this.timeout(60_000)

  it('continues when there is space again, writes buffered lines, and logs how many lines were lost', async function () {
    await using folder = await temporaryFolder()
    const disk = join(folder.path, 'disk')
    skipBecause(this, smallDisk(disk))
    const path = join(disk, 'log')
    const file = openSync(path, 'a')
    try {
      const { destination, end } = openLog({ fd: file, isTTY: false } as unknown as Parameters<typeof openLog>[0], true)
      expect(() => writeFileSync(join(disk, 'filler'), Buffer.alloc(2_000_000))).to.throw(/ENOSPC/)
      for (let at = 0; at < 9000; at++) destination.write(`{"at":${at},"padding":"${PADDING}"}\n`)
      await setTimeout(100)
      expect(readFileSync(path, 'utf8')).to.equal('')
      execFileSync('mount', ['-o', 'remount,size=32m', disk])
      while (!readFileSync(path, 'utf8').includes('"dropped":')) await setTimeout(20)
      destination.write('{"at":"the end"}\n')
      await end()
      const lines = readFileSync(path, 'utf8')
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as { at?: number | string; dropped?: number })
      const { dropped = 0 } = lines.find(line => line.dropped !== undefined)!
      expect(dropped).to.be.above(0)
      expect(lines.filter(line => typeof line.at === 'number').map(line => line.at)).to.deep.equal(
        Array.from({ length: 9000 - dropped }, (_, at) => at)
      )
      expect(lines.at(-1)).to.deep.equal({ at: 'the end' })
    } finally {
      closeSync(file)
      removeDisk(disk)
    }
  })
})

import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { identityOf, setAside } from '../src/identity.ts'
import { temporaryFolder } from './support.ts'

const former = (folder: string) => readdirSync(folder).filter(name => /\.former-\d+-wal$/.test(name))

/** A file with a log, and another file in its place. */
async function replaced() {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'svc.db')
  writeFileSync(path, 'former')
  writeFileSync(`${path}-wal`, 'log of the former')
  const identity = identityOf(path)!
  writeFileSync(`${path}.new`, 'new')
  renameSync(`${path}.new`, path)
  return { folder, path, identity }
}

describe('the identity of an open file', () => {
  it('moves the log of a former file out of the way of the one in its place, and keeps it', async () => {
    const { folder, path, identity } = await replaced()
    await using _ = folder
    setAside(path, identity)
    expect(existsSync(`${path}-wal`)).to.equal(false)
    expect(former(folder.path).map(name => readFileSync(join(folder.path, name), 'utf8'))).to.deep.equal(['log of the former'])
  })

  it('does not take the log of the new file for that of the former one, though it may have the same number', async () => {
    const { folder, path, identity } = await replaced()
    await using _ = folder
    const log = `${path}-wal`
    await setTimeout(20) // times of birth are those of the system's clock tick, 10 ms at the most
    rmSync(log)
    // the free number goes to one of the next files on ext4
    for (let i = 0; i < 50 && statSync(log, { throwIfNoEntry: false })?.ino !== Number(identity.log!.split(':')[1]); i++) {
      if (existsSync(log)) renameSync(log, `${log}.${i}`)
      writeFileSync(log, 'log of the new file')
    }
    setAside(path, identity)
    expect(readFileSync(log, 'utf8')).to.equal('log of the new file')
    expect(former(folder.path)).to.deep.equal([])
  })

  it('leaves no empty log of a former file for the one in its place', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    writeFileSync(path, 'damaged')
    writeFileSync(`${path}.new`, 'new')
    const identity = identityOf(path)!
    writeFileSync(`${path}-wal`, '') // by another reader of the damaged file
    await setTimeout(20)
    renameSync(`${path}.new`, path)
    setAside(path, identity)
    expect(readdirSync(folder.path)).to.deep.equal(['svc.db'])
  })
})

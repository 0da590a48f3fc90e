import { chmod, chown, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import { deadHolders, findServers, listenControl, reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { failureOf } from '../support/failure.ts'

/** A server of a stranger: it knows its visitors' requests. */
async function strangerAt(place: string): Promise<AsyncDisposable> {
  const unused = () => Promise.reject(new Error('unused'))
  const info = { pid: 1, url: 'http://evil.example', host: 'evil.example', port: 80, version: '0', startedAt: 1, workers: [] }
  return await listenControl(
    place,
    { pid: 1, id: 'stranger' },
    {
      async *pause() {},
      async *ask() {},
      async *request() {},
      resume: unused,
      report: unused,
      stop: unused,
      reload: unused,
      info: async () => info,
    }
  )
}

describe('the note that leads to a control socket in the temporary directory', () => {
  let home: string
  let folder: string
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    folder = await mkdtemp(join(tmpdir(), 'svc-'))
    await mkdir(join(home, 'run'), { mode: 0o700 })
    await writeFile(join(home, 'run', '7.path'), join(folder, 'control.sock'))
    await writeFile(join(home, 'run', '7.id'), 'former')
  })
  afterEach(async () => {
    await rm(home, { recursive: true, force: true })
    await rm(folder, { recursive: true, force: true })
  })
  /** A stranger has made a folder with the name of that of a server that was killed, when the system had cleaned its temporary files. */
  const bindThere = async () => {
    const own = await mkdtemp(join(tmpdir(), 'svc-other-'))
    const stranger = await strangerAt(own)
    await rename(join(own, 'run', '1.sock'), join(folder, 'control.sock'))
    return {
      async [Symbol.asyncDispose]() {
        await stranger[Symbol.asyncDispose]()
        await rm(own, { recursive: true, force: true })
      },
    }
  }

  it('leads no command to a folder that others can write', async () => {
    await using _ = await bindThere()
    expect(await findServers(home)).to.have.length(1)
    await chmod(folder, 0o777)
    expect(await findServers(home)).to.deep.equal([])
    expect(codeOf(await failureOf(reachServer(home)))).to.equal('SERVER_NONE')
  })

  it('leads no command to a folder of another user, and a server removes the note only', async function () {
    if (process.getuid?.() !== 0) this.skip()
    await using _ = await bindThere()
    await chown(folder, 65_534, 65_534)
    await chmod(folder, 0o700)
    expect(await findServers(home)).to.deep.equal([])
    expect(await deadHolders(home)).to.deep.equal(['former.'])
    await using _own = await strangerAt(home)
    expect((await readdir(join(home, 'run'))).sort()).to.deep.equal(['1.id', '1.sock'])
    expect((await stat(join(folder, 'control.sock'))).isSocket()).to.equal(true)
  })
})

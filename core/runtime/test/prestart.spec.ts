// Not a unit test: starts processes.
import { existsSync } from 'node:fs'
import type { Isolation, IsolationRequest } from '@svc/core/contracts'
import { Prestarts } from '@svc/runtime/isolation'
import { expect } from 'chai'

const PARENT_ENDS =
  'process.stdin.resume(); const s = new (require("net").Socket)({ fd: 3 }); s.on("close", () => process.exit(0)).resume()'
const OPTIONS = { closeLimitMs: 200 }

/** Starts plain Node processes, and notes what it has prepared and released. */
function isolationWith(fails: (plugin: string) => boolean = () => false) {
  const prepared: string[] = []
  const released: string[] = []
  const isolation: Isolation = {
    async prepare({ plugin }) {
      prepared.push(plugin)
      if (fails(plugin)) throw new Error('no sandbox')
      const args = ['-e', PARENT_ENDS]
      return { id: plugin, file: process.execPath, args, env: {}, hold: 'nothing', hangMs: 1e9, restarts: 0, windowMs: 1e9 }
    },
    async release(id) {
      released.push(id)
      return []
    },
    refused: async () => {},
    look: async () => ({ cpuMs: 0, memoryBytes: 0, refusals: {} }),
    quarantine: async () => {},
    async *quarantined() {},
  }
  return { isolation, prepared, released }
}

const requestOf = (plugin: string, config: object = {}): IsolationRequest => ({
  plugin,
  folder: '',
  permissions: {},
  args: [],
  hostFolders: [],
  config: { section: plugin, value: config },
})

describe('processes that start before the setup of their plugin', () => {
  it('are those of all planned plugins, each taken once', async () => {
    const prestarts = new Prestarts()
    const { isolation, prepared } = isolationWith()
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) prestarts.plan(requestOf(name))
    prestarts.begin(isolation)
    const first = await prestarts.take(requestOf('a'), OPTIONS)
    expect(first?.pid).to.be.a('number')
    expect(await prestarts.take(requestOf('a'), OPTIONS)).to.equal(undefined)
    const last = await prestarts.take(requestOf('f'), OPTIONS)
    expect(last?.pid).to.be.a('number')
    expect(prepared).to.have.members(['a', 'b', 'c', 'd', 'e', 'f'])
    await Promise.all([first!.end(), last!.end(), prestarts.end()])
  })

  it('are not given for another configuration, and end when no setup takes them', async () => {
    const prestarts = new Prestarts()
    const { isolation, prepared, released } = isolationWith()
    prestarts.plan(requestOf('a', { server: 'db:1' }))
    prestarts.plan(requestOf('b'))
    prestarts.begin(isolation)
    expect(await prestarts.take(requestOf('a', { server: 'db:2' }), OPTIONS)).to.equal(undefined)
    const taken = await prestarts.take(requestOf('b'), OPTIONS)
    await prestarts.end()
    expect(released).to.deep.equal(['a'])
    expect(existsSync(`/proc/${taken!.pid}`)).to.equal(true)
    await taken!.end()
    prestarts.plan(requestOf('c'))
    prestarts.begin(isolation)
    expect(await prestarts.take(requestOf('c'), OPTIONS)).to.equal(undefined)
    expect(prepared).to.deep.equal(['a', 'b'])
  })

  it('leave a failure to the setup, which reports it', async () => {
    const prestarts = new Prestarts()
    const { isolation } = isolationWith(plugin => plugin === 'a')
    prestarts.plan(requestOf('a'))
    prestarts.begin(isolation)
    expect(await prestarts.take(requestOf('a'), OPTIONS)).to.equal(undefined)
    await prestarts.end()
  })
})

import { systemContext } from '@svc/core'
import { findServers, reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'
import { makeWorkspace } from './support/svc.ts'

const IN_MEMORY = `plugins:
  - { use: "@svc/plugin-store-sqlite", enabled: false }
  - "@svc/plugin-store-memory"
`

describe('svc serve with a store that each process has for itself', function () {
  this.timeout(120_000)
  const it = sideBySide()
  it('does not start with more than one worker, and says what to do instead', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', IN_MEMORY)
    const { code, err } = await workspace.svc(['serve', '--port', '0', '--workers', '2'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^MEMORY_NOT_SHARED/m)
      .and.contain('2 workers cannot share a store of the kind "memory"')
      .and.contain('Use a store that processes share, such as @svc/plugin-store-sqlite, or set server.workers to 1')
    expect(await findServers(workspace.home)).to.deep.equal([])
  })

  it('is found by svc config check --start', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', `${IN_MEMORY}server: { workers: 2 }\n`)
    const { code, err } = await workspace.svc(['config', 'check', '--start'])
    expect([code, err.match(/^MEMORY_NOT_SHARED/gm)?.length], err).to.deep.equal([1, 1])
    await workspace.write('svc.config.yaml', IN_MEMORY)
    const one = await workspace.svc(['config', 'check', '--start'])
    expect(one.code, one.err).to.equal(0)
  })

  it('starts with one, and no reload makes it more', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', IN_MEMORY)
    const server = await workspace.serve()
    await workspace.write('svc.config.yaml', `${IN_MEMORY}server: { workers: 2 }\n`)
    {
      using found = await reachServer(workspace.home)
      const { problems } = await found.control.reload(systemContext(AbortSignal.timeout(30_000)))
      expect(problems.map(problem => problem.code)).to.deep.equal(['MEMORY_NOT_SHARED'])
    }
    expect((await fetch(`${server.url}/health`)).status).to.equal(200)
    expect((await server.end()).code).to.equal(0)
  })
})

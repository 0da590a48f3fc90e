import { expect } from 'chai'
import { makePlace } from './support/svc.ts'

describe('svc reload', () => {
  it('says which workers serve now and which end what they began', async () => {
    await using place = await makePlace()
    const server = await place.serve()
    const { code, out } = await place.svc(['reload'])
    expect(code).to.equal(0)
    expect(out).to.contain(`reloaded: a new worker serves ${server.url}`)
    const { code: again, out: json } = await place.svc(['reload', '--json'])
    expect(again).to.equal(0)
    expect(JSON.parse(json)).to.include.keys('url', 'ready', 'draining', 'drain_limit_ms')
    await server.said(/reloaded: a new worker serves/)
    expect((await server.end()).code).to.equal(0)
  })

  it('ends with 1 and all faults of a configuration that cannot be taken; the old one serves on', async () => {
    await using place = await makePlace()
    const server = await place.serve()
    await place.write('svc.config.yaml', 'server:\n  hots: x\nchat:\n  message_limit: many\n')
    const { code, err } = await place.svc(['reload'])
    expect(code).to.equal(1)
    expect(err).to.contain('the old workers serve on').and.contain('(svc.config.yaml:2)').and.contain('(svc.config.yaml:4)')
    expect((await fetch(`${server.url}/health`)).status).to.equal(200)
    expect((await server.end()).code).to.equal(0)
  })

  it('ends with 1 when the new worker dies right after it was ready; the old one serves on', async () => {
    await using place = await makePlace()
    const server = await place.serve()
    const reload = place.svc(['reload'])
    const [, pid] = await server.said(/worker (\d+) is ready/)
    process.kill(Number(pid), 'SIGKILL')
    const { code, err } = await reload
    expect(code).to.equal(1)
    expect(err).to.contain('the old workers serve on').and.contain('was ready and ended within')
    expect((await fetch(`${server.url}/health`)).status).to.equal(200)
    expect((await server.end()).code).to.equal(0)
  })

  it('ends with 1 when no server runs', async () => {
    await using place = await makePlace()
    const { code, err } = await place.svc(['reload'])
    expect(code).to.equal(1)
    expect(err).to.contain('SERVER_NONE')
  })
})

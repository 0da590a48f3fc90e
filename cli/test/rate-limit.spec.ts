import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { makeWorkspace } from './support/svc.ts'

const ENABLED = 'server:\n  rate_limit:\n    enabled: true\n    requests_per_minute: 2\n'

describe('svc serve with limits', () => {
  it('applies server.rate_limit, and counts no requests without it', async () => {
    await using workspace = await makeWorkspace()
    const ask = (url: string, path: string) => fetch(`${url}${path}`, { headers: { connection: 'close' } })
    const modes = (url: string) => ask(url, '/api/v1/modes')
    const open = await workspace.serve()
    const { headers } = await modes(open.url)
    expect(headers.get('x-ratelimit-limit')).to.equal(null)
    await open.end()
    await workspace.write('svc.config.yaml', ENABLED)
    const limited = await workspace.serve()
    const statuses: number[] = []
    for (const _ of [1, 2, 3]) statuses.push((await modes(limited.url)).status)
    expect(statuses).to.deep.equal([200, 200, 429])
    expect((await ask(limited.url, '/health')).status).to.equal(200)
    await limited.end()
    const again = await workspace.serve()
    expect((await modes(again.url)).status, 'after a restart').to.equal(429)
    await again.end()
  })

  it('limits requests with the environment of the container image, and warns of nothing', async () => {
    const image = await readFile(new URL('../../Containerfile', import.meta.url), 'utf8')
    const env = Object.fromEntries([...image.matchAll(/\b(SVC_SERVER__\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]))
    expect(env).to.include.keys('SVC_SERVER__HOST', 'SVC_SERVER__AUTH__ENABLED', 'SVC_SERVER__RATE_LIMIT__ENABLED')
    await using workspace = await makeWorkspace()
    const server = await workspace.serve([], { env: { ...env, SVC_API_KEY: 'a-key-of-a-container-image' } })
    const { status, headers } = await fetch(`${server.url}/api/v1/modes`, {
      headers: { connection: 'close', 'x-api-key': 'a-key-of-a-container-image' },
    })
    expect([status, headers.get('x-ratelimit-limit')]).to.deep.equal([200, '60'])
    const { code, out } = await server.end()
    expect(code).to.equal(0)
    // how long a tap takes depends on the load of the machine
    expect(out.split('\n').filter(line => line.includes('"level":40') && !line.includes('a tap is slow'))).to.deep.equal([])
  })

  it('warns if the server listens beyond loopback without limits', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve([], { env: { SVC_SERVER__HOST: '0.0.0.0' } })
    expect((await server.end()).out).to.contain('server.rate_limit.enabled')
  })

  it('refuses to start where the plugin that limits was taken out, with the hint', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', `${ENABLED}plugins:\n  - use: "@svc/plugin-rate-limit"\n    enabled: false\n`)
    const { code, err } = await workspace.svc(['config', 'check'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^CONFIG_UNOWNED/m)
      .and.contain('rate limits')
      .and.contain('svc.config.yaml:3')
  })
})

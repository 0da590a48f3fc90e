import { writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { fileURLToPath } from 'node:url'
import { inNewHome, startService } from '../support/service.ts'

const FAKE_DNS = fileURLToPath(new URL('../support/fake-dns.mjs', import.meta.url))

interface Listening extends AsyncDisposable {
  readonly port: number
  /** What was asked for, in order. */
  readonly asked: string[]
}

/** A server that answers everything with 401, which says where the metadata of its login are. */
async function listen(host: string, port: number, metadata?: (port: number) => string, onAsked = () => {}): Promise<Listening> {
  const asked: string[] = []
  const server: Server = createServer((request, response) => {
    asked.push(request.url ?? '')
    onAsked()
    const where = metadata?.((server.address() as AddressInfo).port)
    response.writeHead(401, where === undefined ? {} : { 'www-authenticate': `Bearer resource_metadata="${where}"` }).end('{}')
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Starts svc with a tool server of this name, which leads to 127.0.0.1, and waits until its first connection has failed. */
async function attempt(port: number, begin: (dnsFile: string) => void = () => {}): Promise<void> {
  await inNewHome(async home => {
    const file = join(home, 'dns.json')
    await writeFile(file, JSON.stringify({ 'tools.test': ['127.0.0.1'] }))
    begin(file)
    const clients = [{ name: 'one', url: `http://tools.test:${port}/mcp`, retry_attempts: 0 }]
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ mcp: { clients } }))
    const env = { NODE_OPTIONS: `--import ${FAKE_DNS}`, SVC_TEST_DNS: file }
    await using service = await startService({ home, cwd: home, env })
    while (!/"mcp":"degraded"/.test(await (await fetch(`${service.url}/health`)).text()))
      await new Promise(resolve => setTimeout(resolve, 20))
  })
}

describe('the name of a tool server', () => {
  it('leads to no other port of its host', async () => {
    await using inner = await listen('127.0.0.1', 0)
    await using server = await listen('127.0.0.1', 0, () => `http://tools.test:${inner.port}/latest/meta-data/`)
    await attempt(server.port)
    expect(server.asked).to.include('/mcp')
    expect(inner.asked).to.deep.equal([])
  })

  it('leads to no other address than those that were found for the server itself (DNS rebinding)', async () => {
    let rebind = () => {}
    await using server = await listen(
      '127.0.0.1',
      0,
      port => `http://tools.test:${port}/metadata`,
      () => rebind()
    )
    await using inner = await listen('127.0.0.2', server.port)
    await attempt(server.port, file => {
      rebind = () => writeFileSync(file, JSON.stringify({ 'tools.test': ['127.0.0.2'] }))
    })
    expect(server.asked).to.include('/mcp')
    expect(inner.asked.filter(path => path !== '/mcp')).to.deep.equal([])
  })
})

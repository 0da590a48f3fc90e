import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { systemContext } from '@svc/core'
import { expect } from 'chai'
import { createConsolePage } from '../src/page.ts'

const ctx = systemContext(new AbortController().signal)

describe('the page of the console in a checkout', () => {
  it('says that it is being built, loads itself until it is there, and says when the build fails', async () => {
    const assets = await mkdtemp(join(tmpdir(), 'svc-console-'))
    const page = createConsolePage(pathToFileURL(`${assets}/`), { send: () => Promise.reject(new Error('no page of a plugin')) })
    const server = createServer((request, response) => {
      page.handle!(request, response, ctx).catch(() => response.writeHead(404).end())
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/console`
    try {
      const early = await fetch(url)
      expect([early.status, early.headers.get('retry-after')]).to.deep.equal([503, '2'])
      expect(await early.text())
        .to.contain('is being built')
        .and.contain('http-equiv="refresh"')
        .and.not.contain('<script')
      expect(early.headers.get('content-security-policy')).to.contain("default-src 'none'")

      await writeFile(join(assets, 'failed.txt'), 'failed')
      expect(await (await fetch(url)).text())
        .to.contain('could not be built')
        .and.not.contain('refresh')

      await mkdir(join(assets, 'files'))
      await writeFile(join(assets, 'files/index-Abc123.js'), 'export {}')
      await writeFile(join(assets, 'index.html'), '<script type="module" src="/console/files/index-Abc123.js"></script>')
      const built = await fetch(`${url}/conversations?id=1`)
      expect([built.status, built.headers.get('etag')]).to.deep.equal([200, '"Abc123"'])
      const script = await fetch(`${url}/files/index-Abc123.js`)
      expect([script.status, script.headers.get('content-type')]).to.deep.equal([200, 'text/javascript; charset=utf-8'])
      expect((await fetch(`${url}/files/failed.txt`)).status).to.equal(404)
    } finally {
      server.close()
      server.closeAllConnections()
      await rm(assets, { recursive: true, force: true })
    }
  })
})

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { sideBySide } from './support/side-by-side.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Runs `npm run audit` against a registry; without one nobody listens at its address. */
async function audited(answer?: RequestListener) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-audit-'))
  const server = createServer(answer)
  if (answer) await once(server.listen(0, '127.0.0.1'), 'listening')
  const port = answer ? (server.address() as AddressInfo).port : 1
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    npm_config_registry: `http://127.0.0.1:${port}/`,
    npm_config_cache: join(folder, 'cache'),
  }
  try {
    return await new Promise<{ code: number; out: string }>(done => {
      execFile('npm', ['run', '--silent', 'audit'], { cwd: ROOT, env }, (error, out) =>
        done({ code: Number(error?.code ?? 0), out })
      )
    })
  } finally {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const advisory = {
  id: 1,
  url: 'https://advisories.example/1',
  title: 'Koa answers too much',
  severity: 'high',
  vulnerable_versions: '>=0.0.0',
}
const answering =
  (advisories: object): RequestListener =>
  (request, response) => {
    const isAudit = request.method === 'POST' && request.url?.includes('/advisories/')
    response.writeHead(isAudit ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(isAudit ? advisories : {}))
  }

describe('npm run audit', () => {
  const it = sideBySide()
  it('lists the advisories about locked packages and ends with 1', async () => {
    const { code, out } = await audited(answering({ koa: [advisory] }))
    expect(out).to.contain('high  koa >=0.0.0  Koa answers too much  https://advisories.example/1')
    expect(code).to.equal(1)
  })

  it('says that there is none', async () => {
    expect(await audited(answering({}))).to.deep.include({
      code: 0,
      out: 'The registry has no advisory about a package of package-lock.json.\n',
    })
  })

  it('says that nothing was checked where the registry does not answer, or is not there', async () => {
    for (const answer of [((_request, response) => response.writeHead(405).end()) satisfies RequestListener, undefined]) {
      const { code, out } = await audited(answer)
      expect(code).to.equal(0)
      expect(out)
        .to.match(/^No answer about advisories: .*Nothing was checked\.$/m)
        .and.not.contain('http:')
    }
  })
})

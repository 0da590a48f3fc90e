import { rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { newHome, type Service, startService } from '../support/service.ts'
import { conform, run } from './suite.ts'

const FIXTURE = fileURLToPath(new URL('./fixture/', import.meta.url))
const require = createRequire(import.meta.url)
const INSPECTOR = join(
  dirname(require.resolve('@modelcontextprotocol/inspector/package.json')),
  'clients/launcher/build/index.js'
)

/** Scenarios that the suite runs and does not count, and that a server of ours has to pass all the same. */
const MORE = {
  '2026-07-28': ['json-schema-2020-12', 'http-header-validation', 'http-custom-header-server-validation'],
  '2025-11-25': ['server-session-lifecycle', 'json-schema-2020-12'],
}

describe('the tool server, by the conformance suite of the protocol', function () {
  this.timeout(60_000)
  let home: string
  let service: Service

  before(async () => {
    home = await newHome()
    const config = { plugins: [FIXTURE], server: { max_requests_per_second: 0 } }
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
    service = await startService({ home, args: ['--mcp'] })
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })

  for (const [revision, scenarios] of [
    ['2026-07-28', 37],
    ['2025-11-25', 30],
  ] as const)
    it(`keeps to all ${scenarios} scenarios of ${revision}`, async () => {
      const { passed, failed, more } = await conform(service.url, revision)
      expect(failed).to.deep.equal([])
      expect(passed).to.have.length(scenarios)
      expect(more).to.include.members(MORE[revision])
    })

  it("answers the command line of the protocol's inspector, which lists tools and calls one", async () => {
    const inspect = async (...args: readonly string[]) => {
      const { stdout } = await run(process.execPath, [INSPECTOR, '--cli', `${service.url}/mcp`, '--transport', 'http', ...args])
      return JSON.parse(stdout) as { readonly tools: { readonly name: string }[]; readonly content: object[] }
    }
    const [listed, called] = await Promise.all([
      inspect('--method', 'tools/list'),
      inspect('--method', 'tools/call', '--tool-name', 'test_region', '--tool-arg', 'region=eu'),
    ])
    expect(listed.tools.map(({ name }) => name)).to.include.members(['test_region', 'read_file'])
    expect(called.content).to.deep.equal([{ type: 'text', text: 'In eu' }])
  })
})

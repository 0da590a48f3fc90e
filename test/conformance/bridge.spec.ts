import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { newHome, type Service, startService } from '../support/service.ts'
import { conform } from './suite.ts'

const folder = (name: string) => fileURLToPath(new URL(`./${name}/`, import.meta.url))
const OPEN = { max_requests_per_second: 0 }

/** The scenarios of each revision that are about calling tools: the bridge stands between the suite and them. */
const TOOLS = {
  '2026-07-28': [
    'tools-list',
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'tools-call-with-progress',
    'input-required-result-basic-elicitation',
    'input-required-result-basic-sampling',
    'input-required-result-basic-list-roots',
    'input-required-result-request-state',
    'input-required-result-multiple-input-requests',
    'input-required-result-multi-round',
  ],
  '2025-11-25': [
    'tools-list',
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-with-logging',
    'tools-call-error',
    'tools-call-with-progress',
    'tools-call-sampling',
    'tools-call-elicitation',
    'elicitation-sep1034-defaults',
    'elicitation-sep1330-enums',
  ],
} as const

describe('the bridge, by the conformance suite of the protocol', function () {
  this.timeout(60_000)
  const homes: string[] = []
  const services: Service[] = []
  let bridge: Service

  async function start(config: object): Promise<Service> {
    const home = await newHome()
    homes.push(home)
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ server: OPEN, ...config }))
    const service = await startService({ home, args: ['--mcp'] })
    services.push(service)
    return service
  }

  before(async () => {
    const fixture = await start({ plugins: [folder('fixture')] })
    const clients = [{ name: 'fixture', url: `${fixture.url}/mcp`, allow: ['test_*', 'json_schema_*'] }]
    bridge = await start({ plugins: [folder('unprefixed')], mcp: { clients, server: { tools: ['test_*', 'json_schema_*'] } } })
    for (;;) {
      const { tools } = (await (await fetch(`${bridge.url}/tools`)).json()) as { tools: { name: string }[] }
      if (tools.some(({ name }) => name === 'test_simple_text')) break
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })
  after(async () => {
    for (const service of services.reverse()) await service[Symbol.asyncDispose]()
    for (const home of homes) await rm(home, { recursive: true, force: true })
  })

  for (const revision of ['2026-07-28', '2025-11-25'] as const)
    it(`lets all scenarios of ${revision} about tools through to the server behind it`, async () => {
      const { passed } = await conform(bridge.url, revision)
      expect(passed).to.include.members([...TOOLS[revision]])
    })
})

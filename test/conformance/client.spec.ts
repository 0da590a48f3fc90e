import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { play, type Scenario } from './client.ts'

const COMMAND = fileURLToPath(new URL('./ask-client.mjs', import.meta.url))
const SUITE = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js'
)
/** Milliseconds for all scenarios, which run side by side, and for one of them. */
const MOST_MS = 100_000
const SCENARIO_MS = 90_000

interface Outcome {
  readonly passed: readonly string[]
  readonly failed: readonly string[]
  /** What our client said of those that failed. */
  readonly said: readonly string[]
}

/** Runs the suite against our client, in this process; answers what became of each scenario. */
async function conform(revision: string): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-conformance-'))
  const path = join(folder, 'sock')
  const said = new Map<string, string>()
  const server = createServer({ allowHalfOpen: true }, async socket => {
    const scenario = JSON.parse(await text(socket)) as Scenario
    const outcome = await play(scenario).then(() => 'good', String)
    said.set(scenario.name, outcome)
    socket.end(outcome)
  }).listen(path)
  const args = [
    SUITE,
    'client',
    '--command',
    `${process.execPath} ${COMMAND} ${path}`,
    '--requirements',
    revision,
    '--timeout',
    String(SCENARIO_MS),
  ]
  const suite = spawn(process.execPath, args, {
    cwd: folder,
    timeout: MOST_MS,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const out = await text(suite.stdout)
  server.close()
  await once(server, 'close')
  await rm(folder, { recursive: true, force: true })
  const summary = out.slice(out.indexOf('=== SUITE SUMMARY ===')).split('\n')
  const named = (mark: string) => summary.flatMap(line => (line.startsWith(`${mark} `) ? [line.split(/[ :]/)[1]!] : []))
  const failed = named('✗')
  return { passed: named('✓'), failed, said: failed.map(name => `${name}: ${said.get(name)}`) }
}

/** How a client gets in without a person: the document's way is a token_url, not the protocol's discovery. */
const WITHOUT_A_PERSON = [
  'auth/client-credentials-jwt',
  'auth/client-credentials-basic',
  'auth/enterprise-managed-authorization',
  'auth/dpop',
  'auth/dpop-nonce',
  'auth/wif-jwt-bearer',
]

describe('the client, by the conformance suite of the protocol', function () {
  this.timeout(2 * MOST_MS)
  let outcomes: Readonly<Record<string, Outcome>>

  before(async () => {
    outcomes = { '2025-11-25': await conform('2025-11-25'), '2026-07-28': await conform('2026-07-28') }
  })

  for (const [revision, count] of [
    ['2025-11-25', 18],
    ['2026-07-28', 32],
  ] as const)
    it(`passes all ${count} scenarios that ${revision} demands, and fails in none but extensions it does not have`, () => {
      const { passed, failed, said } = outcomes[revision]!
      expect(
        failed.filter(name => !WITHOUT_A_PERSON.includes(name)),
        said.join('\n')
      ).to.deep.equal([])
      // one is run and not counted
      expect(passed.filter(name => name !== 'json-schema-2020-12-preservation')).to.have.length(count)
      expect(passed).to.include('json-schema-2020-12-preservation')
    })
})

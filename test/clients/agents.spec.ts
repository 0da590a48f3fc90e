// Real coding agents against a real server: each has a home of its own, is configured by `svc connect`, and finds no network.
import { expect } from 'chai'
import { makeWorkspace, type Workspace } from '../../cli/test/support/svc.ts'
import { skipBecause } from '../support/needs.ts'
import { AGENTS, agentHome, type AgentRun, missing } from './support/agents.ts'
import { openScripted, type Scripted, shellCall, type Step, type WireName } from './support/wires.ts'

/** The key of the server, which only the variable has. */
const KEY = 'sk-canary-of-the-clients'

/** The result shows that a shell ran the command. Gemini CLI refuses substitutions. */
const COMMAND = 'printf proof-%d 0x2a'
const PROOF = 'proof-42'

const say =
  (words: string): Step =>
  (wire, reply) =>
    wire.say(reply, words)

const callShell: Step = (wire, reply, body) => {
  const { name, input } = shellCall(wire.tools(body), COMMAND)
  return wire.call(reply, name, input)
}
const repeatResult: Step = (wire, reply, body) => {
  const results = wire.results(body)
  return wire.say(reply, results.includes(PROOF) ? `the tool said ${PROOF}` : `no proof in ${results.slice(0, 500)}`)
}

/** The upstreams of all agents. */
const BEHIND: readonly (readonly [WireName, string])[] = [
  ['oai', 'chat completions'],
  ['res', 'responses'],
  ['ant', 'messages'],
]

describe('coding agents', () => {
  let space: Workspace
  let url: string
  const upstreams = {} as Record<WireName, Scripted>

  before(async () => {
    for (const name of ['oai', 'res', 'ant', 'goo'] as const) upstreams[name] = await openScripted(name)
    space = await makeWorkspace()
    const provider = (name: WireName, type: string) =>
      `  ${name}: { type: ${type}, base_url: ${upstreams[name].upstream.url}${name === 'goo' ? '' : '/v1'}, api_key_env: UPSTREAM_KEY, models: [m] }`
    const config = await space.write(
      'svc.config.yaml',
      `server: { auth: { enabled: true } }
chat: { policy: { attempts: 1, breaker_failures: 0 } }
providers:
  local: {}
${provider('oai', 'openai')}
${provider('res', 'openai, api: responses')}
${provider('ant', 'anthropic')}
${provider('goo', 'google')}
`
    )
    const env = { SVC_API_KEY: KEY, UPSTREAM_KEY: 'sk-upstream' }
    url = (await space.serve(['--config', config], { env })).url
  })
  after(async () => {
    await space?.[Symbol.asyncDispose]()
    for (const one of Object.values(upstreams)) await one[Symbol.asyncDispose]()
  })

  /** Configures the agent for a model, and gives it a prompt. */
  async function ask(client: string, model: string, prompt: string): Promise<AgentRun> {
    await using place = await agentHome()
    const env = { HOME: place.home, SVC_API_KEY: KEY }
    const connected = await space.svc(['connect', client, '--url', url, '--model', model, '--write', '--json'], { env })
    expect(connected.code, connected.err).to.equal(0)
    const variables = Object.entries(JSON.parse(connected.out).variables as Record<string, string>)
    // a word in quotes, or the variable of the key
    const values = variables.map(([name, value]) => [name, value.startsWith("'") ? value.slice(1, -1) : KEY])
    return await place.run(AGENTS[client]!, prompt, KEY, Object.fromEntries(values) as Record<string, string>)
  }

  for (const [client, agent] of Object.entries(AGENTS)) {
    const reason = missing(agent)
    const group = reason === undefined ? describe : describe.skip
    group(reason === undefined ? agent.title : `${agent.title} [skipped: ${reason}]`, () => {
      before(async function () {
        const { err } = await space.svc(['connect', client, '--url', url], { env: { SVC_API_KEY: KEY } })
        skipBecause(this, err.startsWith('ENDPOINT_MISSING') ? err.split('\n')[1]!.trim() : undefined)
      })

      it('prints an answer of provider-local', async () => {
        const { code, out } = await ask(client, 'local/local-1', 'say hello to everybody')
        expect(out).to.match(/(?:You said|I heard|Your message was|You wrote|As I understand it): [\s\S]*say hello to everybody/)
        expect(code).to.equal(0)
      })

      for (const [name, api] of client === 'gemini' ? [...BEHIND, ['goo', 'the Gemini API'] as const] : BEHIND)
        it(`runs its tool for a model behind ${api}, and sends the result`, async () => {
          const requests = upstreams[name].script(callShell, repeatResult)
          const { code, out } = await ask(client, `${name}/m`, 'run the command')
          expect(out, JSON.stringify(requests.at(-1) ?? {}).slice(-1500)).to.include(`the tool said ${PROOF}`)
          expect(code).to.equal(0)
        })

      it('asks again or reports an error after a stream that breaks', async function () {
        const requests = upstreams.oai.script((wire, reply) => wire.cut(reply, 'half an ans'), say('whole again'))
        const { code, out } = await ask(client, 'oai/m', 'say something')
        expect(requests, out).to.not.have.length(0)
        const isAgain = requests.length > 1 && out.includes('whole again')
        this.test!.title += isAgain ? ' (asks again)' : ` (ends with ${code})`
        expect(isAgain || code !== 0 || /error|fail|interrupt|broke|closed|ended/i.test(out), out).to.equal(true)
      })

      it('asks again after a 429', async () => {
        const requests = upstreams.oai.script((wire, reply) => wire.limited(reply), say('after the limit'))
        const { code, out } = await ask(client, 'oai/m', 'say something')
        expect(out, `${requests.length} requests`).to.include('after the limit')
        expect(code).to.equal(0)
      })

      // some ask for a summary and go on
      it('reports a context that is too long, or shortens it', async function () {
        const requests = upstreams.oai.script((wire, reply) => wire.tooLong(reply), say('shorter now'))
        const { out } = await ask(client, 'oai/m', 'say something')
        expect(requests, out).to.not.have.length(0)
        this.test!.title += requests.length > 1 ? ' (shortens it)' : ' (reports it)'
        expect(requests.length > 1 || /context|too long|maximum/i.test(out), out).to.equal(true)
      })
    })
  }
})

import { type RunnableCommand, runCommand } from '@svc/cli/command'
import { codeOf } from '@svc/core'
import { Providers, type ServerChoice, type ServerClient, type StreamEvent, Tools } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { COMMANDS } from '../src/commands.ts'
import { startChatHost, says, scripted, tool } from './chat-host.ts'

const TOOL = tool({
  description: 'Counts\nin two lines',
  category: 'tests',
  effects: ['read'],
  call: async () => ({ content: [{ type: 'text', text: 'three' }] }),
})

/** A host with one tool and one provider of its own. */
const openHost = () => startChatHost({ give: [item(Tools, 'count_it', TOOL), item(Providers, 'a', scripted([says('OK')]))] })

/** A server that answers these records by method and path, and this stream. */
function serverOf(records: Readonly<Record<string, object>>, events: readonly object[] = []) {
  const asked: string[] = []
  const answer = (name: string) => {
    asked.push(name)
    return records[name] ?? {}
  }
  const client: ServerClient = {
    url: 'http://server.example',
    request: async <T>(method: string, path: string) => answer(`${method} ${path}`) as T,
    async *stream(method, path): AsyncGenerator<StreamEvent> {
      answer(`${method} ${path}`)
      for (const event of events) yield { event: 'message', data: JSON.stringify(event) }
    },
    text: () => {
      throw new Error('the commands download nothing')
    },
  }
  return { client, asked }
}

const failureOf = (command: RunnableCommand, argv: readonly string[], given: Parameters<typeof runCommand>[2]) =>
  runCommand(command, argv, given).then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => ({ code: codeOf(error), exit: (Object(error) as { oclif?: { exit?: number } }).oclif?.exit })
  )

describe('the commands of the chat plugin', () => {
  it('list and call the tools of a host of their own where no server runs', async () => {
    await using chatHost = await openHost()
    const host = async () => chatHost.host
    const listed = await runCommand(COMMANDS['tools:list'], ['--category', 'tests'], { host })
    expect(listed.out[0]).to.match(/^1 tool of the host of this process\n\nTOOL .*\ncount_it +tests +read +Counts$/)
    const called = await runCommand(COMMANDS['tools:call'], ['count_it', '--json'], { host })
    expect(called.code).to.equal(0)
    expect(JSON.parse(called.out[0]!)).to.deep.include({ success: true, tool: 'count_it', is_error: false })
  })

  it('list the tools of the server that the flags name', async () => {
    const record = { name: 'far', category: 'away', description: 'Far', parameters: {} }
    const { client, asked } = serverOf({ 'GET /api/v1/tools': { tools: [record] } })
    const choices: (ServerChoice | undefined)[] = []
    const server = async (choice?: ServerChoice) => (choices.push(choice), client)
    const { out } = await runCommand(COMMANDS['tools:list'], ['--url', client.url, '--json'], { server })
    expect(JSON.parse(out[0]!)).to.deep.equal({ from: 'the server at http://server.example', tools: [record] })
    expect(asked).to.deep.equal(['GET /api/v1/tools'])
    expect(choices[0]?.url).to.equal(client.url)
  })

  it('end with 2 under their own codes where the command line is wrong', async () => {
    await using chatHost = await openHost()
    const host = async () => chatHost.host
    for (const [command, argv, code] of [
      ['tools:list', ['--category', 'nope'], 'CATEGORY_UNKNOWN'],
      ['tools:show', ['nope'], 'TOOL_UNKNOWN'],
      ['tools:call', ['nope'], 'TOOL_UNKNOWN'],
      ['tools:call', ['count_it', 'three'], 'TOOL_ARGUMENTS_INVALID'],
      ['providers:test', ['nope'], 'PROVIDER_UNKNOWN'],
    ] as const)
      expect(await failureOf(COMMANDS[command], argv, { host }), command).to.deep.equal({ code, exit: 2 })
    expect((await failureOf(COMMANDS['tools:list'], ['--url', 'http://a', '--local'], { host })).code).to.equal(
      'COMMAND_LINE_INVALID'
    )
  })

  it('say a few words to a provider of a server, and delete the conversation that this made', async () => {
    const end = { type: 'end', status: 'completed', provider: 'a', model: 'm', tokens_used: { output: 2 } }
    const { client, asked } = serverOf(
      {
        'GET /api/v1/providers': { providers: [{ name: 'a', models: ['m'], features: {} }] },
        'GET /api/v1/status': { providers: { a: { healthy: true } } },
      },
      [{ type: 'start', conversation_id: 'conv_1' }, { type: 'token', content: 'OK' }, end]
    )
    const { code, out } = await runCommand(COMMANDS['providers:test'], ['a', '--chat', '--json'], { server: async () => client })
    expect(code).to.equal(0)
    expect(JSON.parse(out[0]!).providers[0].chat).to.deep.include({ success: true, model: 'm', output_tokens: 2 })
    expect(asked.slice(-2)).to.deep.equal(['POST /api/v1/chat/stream', 'DELETE /api/v1/conversations/conv_1'])
  })

  it('list the installed providers that no entry of the configuration makes, of this home alone', async () => {
    await using chatHost = await openHost()
    const waiting = { plugin: 'svc-plugin-parrot', type: 'parrot', hint: 'write it' }
    const unconfigured = async (section: string) => (section === 'providers' ? [waiting] : [])
    const own = await runCommand(COMMANDS['providers:list'], ['--json'], { host: async () => chatHost.host, unconfigured })
    expect(JSON.parse(own.out[0]!).not_configured).to.deep.equal([waiting])
    const { client } = serverOf({ 'GET /api/v1/providers': { providers: [] }, 'GET /api/v1/status': { providers: {} } })
    const far = await runCommand(COMMANDS['providers:list'], ['--url', client.url, '--json'], {
      server: async () => client,
      unconfigured,
    })
    expect(JSON.parse(far.out[0]!).not_configured).to.deep.equal([])
  })
})

import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { describeWith } from '../../test/support/needs.ts'
import { tidesFolder } from '../../test/support/tides.ts'
import { makeWorkspace, type Workspace } from './support/svc.ts'

const COMMANDS = `import { Args, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'
class Ask extends SvcCommand {
  static summary = 'Ask the server'
  static examples = ['svc tide ask GET /api/v1/tools']
  static args = { method: Args.string({ description: 'Method', required: true, ignoreStdin: true }), path: Args.string({ description: 'Path', required: true, ignoreStdin: true }) }
  static flags = SERVER_FLAGS
  async run() {
    const { args: { method, path }, flags } = await this.parse(Ask)
    const server = await this.server(method === 'OPERATOR' ? { operator: true } : flags)
    if (!server) return this.print('no server')
    if (method === 'STREAM') {
      for await (const { event, data } of server.stream('POST', path, { body: { message: 'hello' } })) this.print(event + ' ' + data)
      return
    }
    const answer = await server.request(method, path, method === 'POST' ? { body: { message: 'hello' } } : {})
    this.print(server.url + ' ' + JSON.stringify(answer))
  }
}
export const COMMANDS = { 'tide:ask': Ask }
`
const KEY = 'an-api-key-of-a-test-of-32-chars'

/** The credential of the user goes only with requests that the user has accepted, and only to a server of this home. */
describeWith('bubblewrap', 'an isolated command with permissions for a server', function () {
  this.timeout(120_000)
  let workspace: Workspace
  const env = { SVC_API_KEY: KEY }
  const ask = (...words: string[]) => workspace.svc(['tide', 'ask', ...words], { env })
  before(async () => {
    workspace = await makeWorkspace()
    const svc = {
      kind: 'command',
      contributes: { commands: ['tide ask'] },
      topics: { tide: 'Tides' },
      permissions: { server: ['GET /api/v1/tools', 'GET /api/v1/tools/*', 'POST /api/v1/chat*'] },
    }
    const files = {
      'commands.js': COMMANDS,
      'index.js': `import { definePlugin } from '@svc/core'\nexport default definePlugin({ setup() {} })`,
    }
    const from = await tidesFolder(workspace.folder, { version: '1.0.0', svc, files })
    await workspace.write('svc.config.yaml', 'server: { auth: { enabled: true } }')
    const installed = await workspace.svc(['plugins', 'install', from, '--yes'], { env })
    expect(installed.code, installed.err).to.equal(0)
    expect(installed.out)
      .to.include('WIDE: with its commands, send POST /api/v1/chat* to your server with your credentials')
      .and.include('with its commands, send GET /api/v1/tools to your server')
  })
  after(() => workspace?.[Symbol.asyncDispose]())

  it('sends those requests, with the credential that it never sees, and reads streams', async () => {
    expect((await ask('GET', '/api/v1/tools')).out, 'without a server').to.equal('no server\n')
    const server = await workspace.serve([], { env })
    const tools = await ask('GET', '/api/v1/tools?category=time')
    expect(tools.code, tools.err).to.equal(0)
    expect(tools.out)
      .to.match(new RegExp(`^${server.url} \\{"tools":\\[\\{`))
      .and.not.include(KEY)
    expect((await ask('POST', '/api/v1/chat', '--port', new URL(server.url).port)).out).to.include('"response"')
    const stream = await ask('STREAM', '/api/v1/chat/stream')
    expect(stream.code, stream.err).to.equal(0)
    expect(stream.out)
      .to.match(/^start /)
      .and.match(/\nend /)
    expect((await ask('GET', '/api/v1/tools/none')).err, 'the error of the server').to.match(/^\w+_NOT_FOUND|^NOT_FOUND|^TOOL/)
    expect((await ask('GET', '/api/v1/tools', '--local')).out).to.equal('no server\n')
  })

  it('sends no other request, however it is written', async () => {
    for (const [method, path] of [
      ['GET', '/api/v1/conversations'],
      ['POST', '/api/v1/tools'],
      ['DELETE', '/api/v1/chat'],
      ['get', '/api/v1/tools'],
      ['GET /api/v1/tools/x', '/api/v1/conversations'],
      ['GET', '/api/v1/tools/../conversations'],
      ['GET', '/api/v1/tools/%2e%2e/conversations'],
      ['GET', '/api/v1/tools/..\\conversations'],
      ['GET', '//evil.example/api/v1/tools'],
      ['GET', 'http://evil.example/api/v1/tools'],
      ['GET', ''],
    ] as const) {
      const { code, out, err } = await ask(method, path)
      expect([code, out], `${method} ${path}`).to.deep.equal([1, ''])
      expect(err, `${method} ${path}`).to.match(/^NOT_PERMITTED/)
    }
  })

  it('cannot act as the operator of the machine', async () => {
    const { code, out, err } = await ask('OPERATOR', '/api/v1/tools')
    expect([code, out]).to.deep.equal([1, ''])
    expect(err).to.match(/^COMMAND_ISOLATED[^]*as the operator/)
  })

  it('cannot name another server', async () => {
    const asked: string[] = []
    const other = createServer((request, response) => {
      asked.push(JSON.stringify(request.headers))
      response.end('{}')
    }).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    try {
      const named = await ask('GET', '/api/v1/tools', '--url', `http://127.0.0.1:${port}`)
      expect(named.err).to.match(/^COMMAND_ISOLATED/)
      expect((await ask('GET', '/api/v1/tools', '--port', String(port))).err).to.match(/^SERVER_NONE/)
      expect(asked).to.deep.equal([])
    } finally {
      other.close()
    }
  })
})

import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { terminal } from '../../cli/test/support/terminal.ts'
import { runSvc } from '../support/command.ts'
import { newHome, post, type Service, startService } from '../support/service.ts'
import { describeWith, lacking, skipBecause } from '../support/needs.ts'

const DECEIVER = fileURLToPath(new URL('../support/deceiver.mjs', import.meta.url))
/** A line as the log would have it, after a line end of each kind, and what steers a terminal: clears it, names its window, turns its text round. */
const FORGED = '{"level":50,"time":"2026-01-01T00:00:00.000Z","msg":"forged"}'
const EVIL = `x\r\n${FORGED}\n\u2028${FORGED}\u001b[2J\u001b]0;owned\u0007\u009b2J\u202e\u0000`
/** Raw in the output they would steer a terminal. */
const ESC = String.fromCharCode(27)
const STEERS = new RegExp(`\\u202e|\\u2028|(?![\\n\\r\\t${ESC}])\\p{Cc}|${ESC}\\[2J|${ESC}\\]`, 'u')
const steers = (text: string) => STEERS.exec(text)?.[0]

const PRINTER = `import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
export default definePlugin({
  setup({ add, log }) {
    add(Tools, 'print', {
      description: 'Prints.', category: 'text', effects: [], parameters: { type: 'object' },
      async call({ text }) {
        console.log(text)
        console.error(text)
        log.warn({ [text]: text, err: new Error(text) }, text)
        throw new Error(text)
      },
    })
  },
})`

/** A home whose configuration names an isolated plugin that prints what it is given, and a tool server that deceives. */
async function hostileHome(folder: string): Promise<string> {
  const place = join(folder, 'printer')
  await mkdir(place, { recursive: true })
  const svc = { api: 1, kind: 'tool', contributes: { tools: ['print'] } }
  const manifest = { name: 'svc-plugin-printer', version: '1.0.0', type: 'module', main: 'index.js', svc }
  await writeFile(join(place, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(place, 'index.js'), PRINTER)
  const home = await newHome()
  const name = EVIL.replaceAll('\0', '')
  const clients = [
    { name: 'liar', command: process.execPath, args: [DECEIVER, name] },
    { name: 'gone', command: `/no/such/${name}` },
  ]
  const plugins = [{ use: place, isolation: 'process' }]
  const config = { plugins, mcp: { server: { enabled: true }, clients }, log: { level: 'debug' } }
  await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
  return home
}

const call = (url: string, tool: string, args: object) => post(`${url}/tools/${tool}/call`, { arguments: args })

/** Calls the tool until the server that has it is connected. */
async function forge(url: string): Promise<void> {
  while ((await call(url, 'liar__forge', { line: EVIL })).status === 404) await new Promise(resolve => setTimeout(resolve, 20))
}

describeWith('bubblewrap', 'text from untrusted sources', () => {
  let folder: string
  before(async () => {
    folder = await realpath(await mkdtemp('/var/tmp/svc-log-'))
  })
  after(() => rm(folder, { recursive: true }))

  describe('in the log', () => {
    let service: Service
    before(async () => {
      const home = await hostileHome(folder)
      service = await startService({ home, cwd: home })
      await forge(service.url)
    })
    after(async () => {
      await service?.[Symbol.asyncDispose]()
      await rm(service.home, { recursive: true, force: true })
    })

    it('add no line of their own to it, and nothing that steers a terminal', async () => {
      const path = encodeURIComponent(EVIL)
      await call(service.url, 'print', { text: EVIL })
      await call(service.url, path, {})
      await post(`${service.url}/api/v1/chat`, {
        message: `/tool ${EVIL.replaceAll('\n', '')} {}`,
        conversation_id: EVIL,
        model: EVIL,
      })
      await post(`${service.url}/api/v1/workflows/run`, { workflow: EVIL })
      await fetch(`${service.url}/api/v1/${path}?${path}=${path}`)
      const clientInfo = { name: EVIL, version: EVIL }
      const initialize = {
        jsonrpc: '2.0',
        id: EVIL,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
      }
      const accept = { accept: 'application/json, text/event-stream' }
      await fetch(`${service.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...accept },
        body: JSON.stringify(initialize),
      }).then(answer => answer.text())
      await post(`${service.url}/mcp`, { jsonrpc: '2.0', id: 1, method: EVIL, params: {} }, accept).catch(() => {})
      await raw(
        `GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-Id: abc\x9b2J{"msg":"forged"}\r\nUser-Agent: \x9b2J\r\nConnection: close\r\n\r\n`
      )
      await raw(`GET /\x1b[2J HTTP/1.1\r\nHost: x\n${FORGED}\r\n\r\n`)
      await service.seen(/svc-plugin-printer.*forged|printer/)
      const code = await service.stop()
      expect(code).to.equal(0)
      const lines = service.output().split('\n').filter(Boolean)
      expect(lines.length).to.be.above(5)
      for (const line of lines) {
        expect(steers(line), line).to.equal(undefined)
        const read = JSON.parse(line) as { msg?: string; time?: string }
        expect([read.msg, read.time]).to.not.include.members(['forged']).and.not.include('2026-01-01T00:00:00.000Z')
      }
    })

    /** Sends bytes as they are, and waits until the server has closed. */
    const raw = (bytes: string) =>
      new Promise<void>(resolve => {
        const { hostname, port } = new URL(service.url)
        const socket = connect(Number(port), hostname, () => socket.end(bytes, 'latin1'))
        socket
          .on('data', () => {})
          .on('error', () => {})
          .on('close', () => resolve())
      })
  })

  describe('on a terminal', () => {
    let home: string
    before(async function () {
      skipBecause(this, lacking('terminal'))
      home = await hostileHome(folder)
    })
    after(async () => {
      if (home !== undefined) await rm(home, { recursive: true, force: true })
    })

    it('do not steer it from the log of svc serve, nor look like a line of it', async () => {
      const tty = await terminal({ home, folder: home }, ['serve', '--port', '0', '--config', 'svc.config.json'])
      await tty.sees('press Ctrl-C to stop')
      const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(tty.seen())!
      await forge(url)
      await call(url, 'print', { text: EVIL })
      await tty.sees('forged')
      tty.type('\u0003')
      await tty.code()
      expect(steers(tty.seen())).to.equal(undefined)
      expect(
        tty
          .seen()
          .split(/\r?\n/)
          .filter(line => line.startsWith(FORGED))
      ).to.deep.equal([])
    })

    it('do not steer it from what a tool of a stranger answers to svc tools call and svc chat', async () => {
      const args = JSON.stringify({ text: EVIL })
      const config = ['--config', 'svc.config.json']
      const tty = await terminal({ home, folder: home }, [
        'mcp',
        'test',
        'liar',
        '--tool',
        'echo',
        '--args',
        args.replaceAll("'", ''),
        ...config,
      ])
      await tty.code()
      expect(tty.seen()).to.contain('forged')
      expect(steers(tty.seen())).to.equal(undefined)
      const chat = await terminal({ home, folder: home }, ['chat', `hello \u202e\u009b2J ${FORGED}`, ...config])
      await chat.code()
      expect(chat.seen()).to.contain('You said')
      expect(steers(chat.seen())).to.equal(undefined)
    })

    it('do not steer it from svc doctor, which repeats what a provider answers', async () => {
      const provider = createServer((_, response) =>
        response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message: EVIL } }))
      )
      await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
      const base_url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
      await writeFile(join(home, 'provider.json'), JSON.stringify({ providers: { openai: { base_url } } }))
      const { out, err } = await runSvc(['doctor', '--config', 'provider.json'], {
        home,
        env: { OPENAI_API_KEY: 'sk-not-a-key' },
      })
      provider.close()
      expect(out).to.contain('openai')
      expect(steers(out + err), out + err).to.equal(undefined)
      expect((out + err).split('\n').filter(line => line.startsWith(FORGED))).to.deep.equal([])
    })

    it('do not steer it from svc mcp test', async () => {
      const command = [
        'mcp',
        'test',
        'liar',
        '--tool',
        'forge',
        '--args',
        JSON.stringify({ line: EVIL }),
        '--config',
        'svc.config.json',
      ]
      const { out, err } = await runSvc(command, { home, share: true })
      expect(steers(out + err), out + err).to.equal(undefined)
      expect((out + err).split('\n').filter(line => line.startsWith(FORGED))).to.deep.equal([])
    })
  })
})

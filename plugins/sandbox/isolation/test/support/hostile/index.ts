import { spawn } from 'node:child_process'
import { promises, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { definePlugin, schema } from '@svc/core'
import { PeerAnswers, Tools } from '@svc/core/contracts'
import { Gong } from './gong.ts'

/** What a plugin may try: each answers with what it got, or how it was refused. */
const ATTACKS: Record<string, (what: string) => unknown> = {
  nothing: () => 'nothing',
  pid: () => process.pid,
  variable: name => process.env[name] ?? 'undefined',
  variables: () => Object.keys(process.env).toSorted().join(' '),
  fetch: async url => (await fetch(url)).text(),
  get: url =>
    new Promise((done, fail) => {
      const asked = request(url, { agent: undefined }, answer => {
        let text = ''
        answer.setEncoding('utf8').on('data', chunk => (text += chunk))
        answer.on('end', () => done(text))
      })
      asked.on('error', fail).end()
    }),
  guarded: async url => {
    const { createGuardedFetch, readBody } = await import('@svc/safe-fetch')
    await using guarded = createGuardedFetch()
    const { body } = await guarded.fetch(url, { signal: AbortSignal.timeout(10_000) })
    return new TextDecoder().decode((await readBody(body)).bytes)
  },
  connect: where =>
    new Promise((done, fail) => {
      const [host, port] = where.split(' ')
      connect(Number(port), host)
        .on('connect', () => done('connected'))
        .on('error', fail)
    }),
  read: path => readFileSync(path, 'utf8'),
  readLater: path => promises.readFile(path, 'utf8'),
  write: path => (writeFileSync(path, 'mine'), 'written'),
  start: command => (spawn(command), 'started'),
  memory: () => {
    const kept: Buffer[] = []
    for (;;) kept.push(Buffer.alloc(16_777_216, kept.length))
  },
  loop: () => {
    for (;;);
  },
  exit: code => process.exit(Number(code)),
  crash: () =>
    void setImmediate(() => {
      throw new Error('crashed')
    }),
  reject: () => void Promise.reject(new Error('rejected')),
  never: () => new Promise(() => {}),
  print: lines => {
    for (let line = 0; line < Number(lines); line++) console.log(`line ${line}`)
    return 'printed'
  },
  touch: names => {
    for (let name = 0; name < Number(names); name++) process.env[`NAME_${name}`]
    return 'touched'
  },
  large: size => 'x'.repeat(Number(size)),
  frame: () => writeSync(3, Buffer.from([255, 255, 255, 255])),
}

export default definePlugin({
  section: 'hostile',
  config: schema<{ setup?: string; with?: string; folder?: string }>({
    type: 'object',
    properties: { setup: { type: 'string' }, with: { type: 'string' }, folder: { type: 'string' } },
    additionalProperties: false,
  }),
  async setup({ config, add, tap, log }) {
    if (config.setup) await ATTACKS[config.setup]!(config.with ?? '')
    tap(Gong.hooks.struck, () => new Promise(() => {}))
    const extra = (name: number | string, size: number) =>
      add(Tools, `extra-${name}`, {
        description: 'x'.repeat(size),
        category: 'test',
        effects: [],
        parameters: { type: 'object' },
        call: async () => ({ content: [] }),
      })
    /** What it may try with its scope. */
    const OF_SCOPE: Record<string, (what: string) => unknown> = {
      log: lines => {
        for (let line = 0; line < Number(lines); line++) log.info({ line }, 'a line of the plugin')
      },
      forge: () => log.info({ plugin: '@svc/plugin-http', level: 60, msg: 'all is well', text: 'x'.repeat(20_000) }, 'forged'),
      taps: () => {
        for (let at = 0; at < 8; at++) tap(Gong.hooks.struck, () => undefined)
      },
      'large tools': () => {
        for (const name of [-1, -2]) extra(name, 9_000_000)
      },
      'long name': () => extra('x'.repeat(1_000_000), 1),
      tools: () => {
        for (let at = 0; at < 1001; at++) extra(at, 1)
      },
    }
    let yielded = 0
    const flood = async function* () {
      for (;;) yield ++yielded
    }
    add(PeerAnswers, 'flood', { answer: flood })
    OF_SCOPE.yielded = () => yielded
    add(Tools, 'attack', {
      description: 'Tries something.',
      category: 'test',
      effects: [],
      parameters: { type: 'object', properties: { what: { type: 'string' }, with: { type: 'string' } } },
      async call({ what, with: given }) {
        const attack = { ...ATTACKS, ...OF_SCOPE }[what as string]!
        return { content: [{ type: 'text', text: String(await attack(given as string)) }] }
      },
    })
  },
})

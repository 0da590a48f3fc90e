import { spawn } from 'node:child_process'
import { promises, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'
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
    add(Tools, 'attack', {
      description: 'Tries something.',
      category: 'test',
      effects: [],
      parameters: { type: 'object', properties: { what: { type: 'string' }, with: { type: 'string' } } },
      async call({ what, with: given }) {
        if (what === 'log') for (let line = 0; line < Number(given); line++) log.info({ line }, 'a line of the plugin')
        const text = what === 'log' ? 'logged' : await ATTACKS[what as string]!(given as string)
        return { content: [{ type: 'text', text: String(text) }] }
      },
    })
  },
})

import { expect } from 'chai'
import type { Service } from '../support/service.ts'
import { routesOf, type Stranger, serveStrangers } from '../support/stranger.ts'
import { until } from '../support/wait.ts'

const MIB = 1024 * 1024
const AT_ONCE = 20

/** A route whose bodies stay in memory until its answer, as those of model APIs do. */
const KEEPING: Stranger = {
  name: 'svc-plugin-keeping',
  isolation: 'in-process',
  svc: { kind: 'routes', ...routesOf({ keep: { method: 'POST', path: '/keep' } }) },
  code: `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
export default definePlugin({
  setup: scope => void scope.add(Routes, 'keep', {
    method: 'POST', path: '/keep', summary: 'Keeps', bodyLimit: 32 * 1024 * 1024, body: { type: 'object' },
    handle: async ({ body }) => {
      await new Promise(resolve => setTimeout(resolve, 300))
      return { body: { size: JSON.stringify(body.list ?? body.text).length } }
    },
  }),
})`,
}

/** Bodies of nearly 32 MiB that become far larger in memory, or stay in it twice. */
const BODIES: Readonly<Record<string, () => string>> = {
  'one text': () => JSON.stringify({ text: 'x'.repeat(31 * MIB) }),
  'a text that is not ASCII': () => JSON.stringify({ text: '€'.repeat(10 * MIB) }),
  'empty lists': () => `{"list":[${'[],'.repeat(10 * MIB)}[]]}`,
  'objects with names of their own': () =>
    `{"list":[${Array.from({ length: 1_200_000 }, (_, at) => `{"name${at}":${at}}`).join(',')}]}`,
  'escaped quotes': () => `{"text":"${'\\"'.repeat(15 * MIB)}"}`,
}

describe('many large bodies at once', function () {
  this.timeout(120_000)
  let service: Service
  before(async () => {
    service = await serveStrangers([KEEPING], { beside: [], env: { NODE_OPTIONS: '--max-old-space-size=384' } })
  })
  after(() => service[Symbol.asyncDispose]())

  const post = async (body: string) => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${service.url}/keep`, { method: 'POST', body, headers }).catch(() => undefined)
    const text = await response?.text().catch(() => '')
    return { status: response?.status, text: text ?? '' }
  }

  for (const [what, make] of Object.entries(BODIES))
    it(`do not end a worker: they are taken, refused, or have to wait (${what})`, async () => {
      const body = make()
      expect(body.length).to.be.within(9 * MIB, 32 * MIB)
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => post(body)))
      // a client that still sends when it is refused can miss the answer
      for (const { status, text } of answers) expect(status, text.slice(0, 300)).to.be.oneOf([200, 413, 503, undefined])
      expect(answers.some(({ status }) => status === 503 || status === 413)).to.equal(true)
      await until(
        () => post(JSON.stringify({ text: 'x'.repeat(MIB) })),
        ({ status }) => status === 200
      )
      expect(service.output()).to.not.include('heap out of memory')
    })
})

import { readdir } from 'node:fs/promises'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect } from 'chai'
import { sideBySide } from '../support/side-by-side.ts'
import type { Exchange } from './exchange.ts'
import { documentProblems, unlike } from './openapi.ts'
import { type Heard, openStage, play, type Stage } from './run.ts'
import { allOf } from './together.ts'

// One folder a rule: its name says it short, its exchange.ts says it in a sentence and shows it.
const SAMPLES = new URL('./samples/', import.meta.url)
const names = (await readdir(SAMPLES)).sort()
const samples = await Promise.all(names.map(async name => ({ name, sample: await read(name) })))

async function read(name: string): Promise<Exchange> {
  const module = (await import(new URL(`${name}/exchange.ts`, SAMPLES).href)) as { default: Exchange }
  return module.default
}

const heard: Heard[] = []
const hear = (item: Heard) => void heard.push(item)
let document: unknown

describe('the HTTP contract', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage({ args: ['--mcp'] })
  })
  after(() => stage[Symbol.asyncDispose]())

  for (const { name, sample } of samples.filter(item => !item.sample.alone && item.sample.together === undefined))
    it(`${sample.rule} [${name}]`, () => play(sample, stage, hear))

  it('is healthy and chats after all of these', async () => {
    const said = await stage.client.post('/api/v1/chat', { message: 'still there?' })
    expect(said.body).to.deep.include({ response: 'You said: still there?' })
    expect((await stage.client.get('/health')).body).to.deep.include({ status: 'healthy' })
  })

  it('is described by /openapi.json in the form of OpenAPI 3.1', async () => {
    const { body, text } = await stage.client.get('/openapi.json')
    document = body
    expect(documentProblems(document)).to.deep.equal([])
    const { valid, errors } = await new Validator().validate(text)
    expect(errors ?? []).to.deep.equal([])
    expect(valid).to.equal(true)
  })
})

const groups = Map.groupBy(
  samples.filter(sample => sample.sample.together !== undefined),
  sample => sample.sample.together
)
for (const [group, members] of groups)
  describe(`the HTTP contract, with a service for all rules about ${group}`, () => {
    let stage: Stage
    before(async () => {
      stage = await openStage(allOf(members.map(member => member.sample)))
    })
    after(() => stage[Symbol.asyncDispose]())
    if (group === 'switches')
      afterEach('profile, override and mode are put back', async () => {
        const put = (what: string, body: unknown) => stage.client.post(`/api/v1/${what}/switch`, body)
        expect((await put('profile', { profile: 'default' })).status).to.equal(200)
        expect((await put('mode', { mode: 'build' })).status).to.equal(200)
      })
    for (const { name, sample } of members) it(`${sample.rule} [${name}]`, () => play(sample, stage, hear))
  })

describe('the HTTP contract, each rule with a service of its own', () => {
  const it = sideBySide()
  for (const { name, sample } of samples.filter(item => item.sample.alone))
    it(`${sample.rule} [${name}]`, async () => {
      await using stage = await openStage(sample)
      await play(sample, stage, hear)
    })
})

/**
 * Routes that need another server: test/management/mcp.spec.ts and test/console/oidc.spec.ts log in, plugin-views.spec.ts and
 * tool-apps.spec.ts in test/console have installed plugins and a tool server with an app.
 */
const ELSEWHERE = [
  'GET /api/v1/console/pages/{name}/view',
  'GET /api/v1/tools/{name}/app',
  'POST /api/v1/console/login',
  'POST /api/v1/mcp/servers/{name}/login',
  'POST /api/v1/mcp/servers/{name}/login/answer',
  'POST /api/v1/plugins/plans',
  'POST /api/v1/plugins/plans/{hash}/apply',
]

describe('the answers to all samples', () => {
  it('are as /openapi.json says, every route and every refusal', () => {
    const { faults: problems, unheard } = unlike(document, heard)
    expect(problems).to.deep.equal([])
    const missing = unheard.filter(name => !ELSEWHERE.includes(name))
    expect(missing, 'routes that no sample asks').to.deep.equal([])
  })
})

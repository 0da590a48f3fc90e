import { readdir } from 'node:fs/promises'
import { expect } from 'chai'
import type { Exchange } from './exchange.ts'
import { documentFaults, unlike } from './openapi.ts'
import { type Heard, openStage, play, type Stage } from './run.ts'

// One folder a rule: its name says it short, its exchange.ts says it in a sentence and shows it.
const SAMPLES = new URL('./samples/', import.meta.url)
const names = (await readdir(SAMPLES)).sort()
const samples = await Promise.all(names.map(async name => ({ name, sample: await read(name) })))

async function read(name: string): Promise<Exchange> {
  const module = (await import(new URL(`${name}/exchange.ts`, SAMPLES).href)) as { default: Exchange }
  return module.default
}

describe('the HTTP contract', () => {
  const heard: Heard[] = []
  let stage: Stage
  before(async () => {
    stage = await openStage()
  })
  after(() => stage[Symbol.asyncDispose]())

  for (const { name, sample } of samples.filter(one => !one.sample.alone))
    it(`${sample.rule} [${name}]`, () => play(sample, stage, one => heard.push(one)))

  it('is healthy and chats after all of these', async () => {
    expect((await stage.client.get('/health')).body).to.deep.include({ status: 'healthy' })
    expect((await stage.client.post('/api/v1/chat', { message: 'still there?' })).body).to.deep.include({
      response: 'You said: still there?',
    })
  })

  it('is described by /openapi.json in the form of OpenAPI 3.1', async () => {
    expect(documentFaults((await stage.client.get('/openapi.json')).body)).to.deep.equal([])
  })

  it('answers as /openapi.json says, every route and every refusal', async () => {
    const { faults, routes } = unlike((await stage.client.get('/openapi.json')).body, heard)
    expect(faults).to.deep.equal([])
    expect(routes.unheard, 'routes that no sample asks').to.deep.equal([])
  })
})

describe('the HTTP contract, each with a service of its own', () => {
  for (const { name, sample } of samples.filter(one => one.sample.alone))
    it(`${sample.rule} [${name}]`, async () => {
      await using stage = await openStage(sample)
      await play(sample, stage)
    })
})

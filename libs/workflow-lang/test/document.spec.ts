import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { type Json, type WorkflowDefinition, WorkflowNodes, Workflows } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { problemsOf, readDefinition } from '../src/index.ts'
import { pluginFolder } from '../../../test/support/plugin-folder.ts'

const PAGES = ['tutorials/first-workflow.md', 'guides/write-a-workflow.md']
const texts = PAGES.map(page => readFile(new URL(`../../../docs/${page}`, import.meta.url), 'utf8'))
const text = (await Promise.all(texts)).join('\n')
const samples = new Map(
  [...text.matchAll(/^```yaml\n# (?:workflows\/)?([\w.]+)\n([^]*?)^```$/gm)].map(([, name, body]) => [name!, body!])
)
const plugin = (name: string) => ({ name: `@svc/plugin-${name}`, use: pluginFolder(name) })
const PLUGINS = ['store-memory', 'queue-store', 'workflow-nodes', 'workflows'].map(plugin)
const CONFIG = { workflows: { secrets: { WEATHER_KEY: { env: 'PATH' } } } }

async function ran(sample: string, input: Json, event?: { readonly name: string; readonly data: Json }) {
  await using host = await testHost(PLUGINS, { config: CONFIG })
  const types = host.slot(WorkflowNodes)
  const context = {
    typeOf: (name: string) => types.get(name),
    types: () => types.names(),
    has: () => true,
    secrets: ['WEATHER_KEY'],
  }
  const { definition, problems } = readDefinition(samples.get(sample) ?? '', sample, context)
  expect(problems).to.deep.equal([])
  expect(problemsOf(definition, context)).to.deep.equal([])
  const service = host.service(Workflows)
  const run = await service.start({ workflow: definition as WorkflowDefinition, input }, testContext())
  if (event) await service.signal(run.id, event, testContext())
  // the one without an end only rests
  return await service.settled(run.id, sample === 'watch.yaml' ? 200 : 10_000, testContext())
}

describe('the pages on writing workflows', () => {
  it('has a first workflow that greets everybody', async () => {
    const { result, status } = await ran('greet.yaml', { names: ['Ada', 'Grace'] })
    expect({ result, status }).to.deep.equal({
      result: { greetings: ['Hello Ada, you are number 1.', 'Hello Grace, you are number 2.'] },
      status: 'completed',
    })
  })

  it('has one that catches its failure', async () => {
    expect((await ran('careful.yaml', { value: { wanted: 3 } })).result).to.equal(3)
    expect((await ran('careful.yaml', { value: {} })).completedNodes).to.deep.equal(['apologise'])
  })

  it('has one whose secret is never shown', async () => {
    expect((await ran('secretive.yaml', {})).result).to.equal('Bearer ***')
  })

  it('has one that takes an event, one without an end, and one with a schedule', async () => {
    const paid = await ran('payment.yaml', {}, { name: 'paid', data: { amount: 12 } })
    expect([paid.status, paid.result]).to.deep.equal(['completed', { by: 'event', data: { amount: 12 } }])
    expect((await ran('watch.yaml', {})).waiting.map(({ node }) => node)).to.deep.equal(['rest'])
    expect((await ran('digest.yaml', {})).result).to.equal('good morning')
  })

  it('has no sample that is not run', () => {
    expect([...samples.keys()]).to.deep.equal([
      'greet.yaml',
      'careful.yaml',
      'payment.yaml',
      'watch.yaml',
      'digest.yaml',
      'secretive.yaml',
    ])
    expect(text.match(/^```yaml$/gm)).to.have.lengthOf(samples.size)
  })
})

import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { TeamDefinitions, WorkflowDefinitions } from '@svc/core/contracts'
import { pluginKit, testHost } from '@svc/testing'
import samples from './samples.ts'

const folder = new URL('..', import.meta.url)

// the file is read and checked, the manifest is held: what every plugin must do
for (const one of await pluginKit(folder, samples)) test(one.title, one.run)

test('brings a workflow and the team that it hands on to', async () => {
  await using host = await testHost([...(samples.beside ?? []), folder], { from: [import.meta.url] })
  equal(host.slot(WorkflowDefinitions).has('plan_sample_word'), true)
  equal(host.slot(TeamDefinitions).has('sample_word_planners'), true)
})

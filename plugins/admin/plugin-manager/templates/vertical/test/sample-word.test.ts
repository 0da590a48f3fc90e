import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { TeamDefinitions, WorkflowDefinitions } from '@svc/core/contracts'
import { pluginKit, testHost } from '@svc/testing'
import samples from './samples.ts'

const folder = new URL('..', import.meta.url)

// the kit of every plugin: reads and checks the file and the manifest
for (const testCase of await pluginKit(folder, samples)) test(testCase.title, testCase.run)

test('provides a workflow and its team', async () => {
  await using host = await testHost([...(samples.beside ?? []), folder], { from: [import.meta.url] })
  equal(host.slot(WorkflowDefinitions).has('plan_sample_word'), true)
  equal(host.slot(TeamDefinitions).has('sample_word_planners'), true)
})

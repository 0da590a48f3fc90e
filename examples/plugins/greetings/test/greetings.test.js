import { deepEqual, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
import { pluginKit, testContext, testHost } from '@svc/testing'
import { Greetings } from '../contract.js'
import plugin from '../index.js'
import samples from './samples.js'

for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

test('greets in the language of another plugin, and names all languages', async () => {
  const french = definePlugin({
    setup: scope => void scope.add(Greetings, 'fr', { language: 'Français', greet: async name => `Bonjour ${name}` }),
  })
  await using host = await testHost([
    { name: 'greetings', use: plugin },
    { name: 'french', use: french },
  ])
  /** @type {(language: string) => Promise<{ body?: unknown }>} */
  const greet = async language =>
    host
      .slot(Routes)
      .get('greetings')
      .handle(
        { method: 'GET', path: `/greetings/${language}`, params: { language }, query: { name: 'Ada' }, headers: {} },
        testContext()
      )
  deepEqual((await greet('fr')).body, { language: 'Français', text: 'Bonjour Ada' })
  await rejects(greet('xx'), /known: en, fr/)
})

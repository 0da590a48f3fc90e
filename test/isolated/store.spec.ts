import { Host, type RunningHost } from '@svc/core'
import { Counts, Store, TextIndex } from '@svc/core/contracts'
import { isolate } from '@svc/runtime/isolation'
import { countsKit, isolated, storeKit, testHost, textIndexKit } from '@svc/testing'
import { storeOf } from './many-stores.ts'

/** All cases in one process, each with a store of its own in it: to start ninety took longer than what they show. */
describe('the store in memory in a process of its own, by the store kit', () => {
  let host: RunningHost
  let opened = 0
  before(async () => {
    const module = new URL('many-stores.ts', import.meta.url).href
    const use = await isolate({ name: 'many-stores', module }, { contracts: [Host, Store, Counts, TextIndex] })
    host = await testHost([{ name: 'many-stores', use }], { strict: false })
  })
  after(() => host.close())

  const open = async () => ({
    store: {
      ...storeOf(Store, host.service(Store), `case ${++opened}`),
      ...storeOf(TextIndex, host.service(TextIndex), `case ${opened}`),
    },
    counts: storeOf(Counts, host.service(Counts), `case ${opened}`),
    hasOtherClock: true,
    async [Symbol.asyncDispose]() {},
  })
  for (const testCase of [...storeKit(open), ...countsKit(open), ...textIndexKit(open)]) it(testCase.title, testCase.run)
})

describe('store-memory, the plugin, in a process of its own', () => {
  const open = async () => {
    const host = await testHost([await isolated(new URL('../../plugins/storage/memory/', import.meta.url))], { strict: false })
    return { store: host.service(Store), [Symbol.asyncDispose]: () => host.close() }
  }
  for (const testCase of storeKit(open).slice(0, 1)) it(testCase.title, testCase.run)
})

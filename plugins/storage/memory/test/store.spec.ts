import { storeKit } from '@svc/testing'
import { createMemoryStore } from '../src/store.ts'

describe('the store in memory', () => {
  const open = async () => {
    const store = createMemoryStore({ maxRecords: 1_000_000, maxBytes: 1 << 30, evict: true })
    return { store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
  }
  for (const testCase of storeKit(open)) it(testCase.title, testCase.run)
})

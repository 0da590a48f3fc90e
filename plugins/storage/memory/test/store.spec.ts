import { countsKit, storeKit, textIndexKit } from '@svc/testing'
import { createMemoryStore } from '../src/store.ts'

describe('the store in memory', () => {
  const open = async () => {
    const store = createMemoryStore({ maxRecords: 1_000_000, maxBytes: 1 << 30, evict: true })
    return { store, counts: store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
  }
  for (const testCase of [...storeKit(open), ...countsKit(open), ...textIndexKit(open)]) it(testCase.title, testCase.run)
})

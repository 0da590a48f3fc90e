import { countsKit, storeKit } from '@svc/testing'
import { openStore } from './support.ts'

describe('the store in SQLite', () => {
  for (const testCase of [...storeKit(openStore), ...countsKit(openStore)]) it(testCase.title, testCase.run)
})

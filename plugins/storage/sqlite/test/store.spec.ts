import { countsKit, storeKit, textIndexKit } from '@svc/testing'
import { openStore } from './support.ts'

describe('the store in SQLite', () => {
  for (const testCase of [...storeKit(openStore), ...countsKit(openStore), ...textIndexKit(openStore)])
    it(testCase.title, testCase.run)
})

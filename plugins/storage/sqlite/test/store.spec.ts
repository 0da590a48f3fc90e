import { storeKit } from '@svc/testing'
import { openStore } from './support.ts'

describe('the store in SQLite', () => {
  for (const one of storeKit(openStore)) it(one.title, one.run)
})

import { runQueueKit } from '@svc/testing'
import { type Redis, startRedis } from '@svc/testing/engines'
import { describeWith } from '../../../../test/support/needs.ts'
import { openBrief, openTwo } from './support.ts'

describeWith('redis', 'the queue of runs in Redis', () => {
  const stack = new AsyncDisposableStack()
  let redis: Redis
  before(async () => (redis = stack.use(await startRedis())))
  after(() => stack.disposeAsync())

  const open = ({ brief }: { readonly brief: boolean }) => (brief ? openBrief : openTwo)({ url: redis.url })
  for (const testCase of runQueueKit(open)) it(testCase.title, testCase.run)
})

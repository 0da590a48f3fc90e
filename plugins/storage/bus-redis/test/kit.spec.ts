import { nodeBusKit, type NodeBusSubject } from '@svc/testing'
import { type Redis, startRedis } from '@svc/testing/engines'
import { describeWith } from '../../../../test/support/needs.ts'
import { newCluster, openMember, openStore } from './support.ts'

describeWith('redis', 'the bus in Redis', () => {
  const stack = new AsyncDisposableStack()
  let redis: Redis
  before(async () => (redis = stack.use(await startRedis())))
  after(() => stack.disposeAsync())

  async function openThree(): Promise<NodeBusSubject> {
    const ends = new AsyncDisposableStack()
    const { store } = ends.use(await openStore())
    const cluster = newCluster()
    const open = async (at: number) => ends.use(await openMember(at, { url: redis.url, cluster, store }))
    return { members: [await open(1), await open(2), await open(3)], close: () => ends.disposeAsync() }
  }
  for (const testCase of nodeBusKit(openThree)) it(testCase.title, testCase.run)
})

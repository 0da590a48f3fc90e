import { Counts } from '@svc/core/contracts'
import { countsKit, type CountsUnderTest, testHost } from '@svc/testing'
import { type Redis, startRedis } from '@svc/testing/engines'
import { describeWith } from '../../../../test/support/needs.ts'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

let clusters = 0

describeWith('redis', 'counts in Redis', () => {
  const stack = new AsyncDisposableStack()
  let redis: Redis
  before(async () => (redis = stack.use(await startRedis())))
  after(() => stack.disposeAsync())

  async function open(): Promise<CountsUnderTest> {
    const clusterId = `kit${++clusters}`
    const ends = new AsyncDisposableStack()
    const another = async () => {
      const plugins = ['redis', 'counts-redis'].map(name => ({ name: `@svc/plugin-${name}`, use: pluginFolder(name) }))
      const host = ends.use(await testHost(plugins, { clusterId, config: { redis: { url: redis.url } } }))
      return host.service(Counts)
    }
    return { counts: await another(), second: another, reopen: another, [Symbol.asyncDispose]: () => ends.disposeAsync() }
  }
  for (const testCase of countsKit(open)) it(testCase.title, testCase.run)
})

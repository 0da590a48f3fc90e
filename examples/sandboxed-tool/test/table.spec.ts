import { Tools } from '@svc/core/contracts'
import { testHost, testContext, toolKit } from '@svc/testing'
import { expect } from 'chai'

async function open(name = 'make_table') {
  const plugins = [new URL('..', import.meta.url), '@svc/plugin-sandbox-quickjs']
  const host = await testHost(plugins, { config: { tools: { table: { most_rows: 3 } } }, from: [import.meta.url] })
  return { name, tool: host.slot(Tools).get(name)!, close: () => host.close() }
}
const ROW = { city: 'Ulm', people: 129_000 }

describe('make_table in the sandbox', () => {
  const cases = toolKit(open, {
    good: [
      {
        args: { rows: [ROW, { city: 'a|b' }] },
        expect: ({ content }) =>
          expect(content).to.deep.equal([
            { type: 'text', text: '| city | people |\n| --- | --- |\n| Ulm | 129000 |\n| a\\|b |  |' },
          ]),
      },
    ],
    bad: [{ args: { rows: [ROW, ROW, ROW, ROW] }, message: /at most 3 rows/ }, { args: { rows: [] } }, { args: {} }],
    concurrent: 10,
  })
  for (const testCase of cases) it(testCase.title, testCase.run)

  it('finds nothing of the server', async () => {
    const { tool, close } = await open('look_around')
    try {
      await tool.call({}, testContext()).then(
        () => expect.fail('it looked around'),
        (error: { code?: string }) => expect(error.code).to.equal('SANDBOX_BLOCKED')
      )
    } finally {
      await close()
    }
  })
})

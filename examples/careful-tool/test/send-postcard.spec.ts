import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Tools } from '@svc/core/contracts'
import { testHost, testContext, toolKit } from '@svc/testing'
import { expect } from 'chai'

async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-postcards-'))
  const outbox = join(folder, 'outbox.txt')
  const host = await testHost([new URL('..', import.meta.url)], { config: { tools: { postcards: { outbox } } } })
  const close = async () => {
    await host.close()
    await rm(folder, { recursive: true })
  }
  return { name: 'send_postcard', tool: host.slot(Tools).get('send_postcard')!, outbox, close }
}
const POSTCARD = { to: 'Ada', text: 'Greetings from Ulm' }

describe('send_postcard', () => {
  const cases = toolKit(open, {
    good: [{ args: POSTCARD, expect: ({ structured }) => expect(structured).to.deep.equal({ sent: true }) }],
    bad: [
      { args: {} },
      { args: { to: 'Ada\nBert', text: 'Hi' } },
      { args: { to: 'Ada', text: 'x'.repeat(501) } },
      { args: { to: 'Ada', text: 7 } },
    ],
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)

  it('wants a person to be asked, and puts the postcard into the outbox', async () => {
    const { tool, outbox, close } = await open()
    try {
      expect(tool.asks).to.equal(true)
      await tool.call(POSTCARD, testContext())
      expect(await readFile(outbox, 'utf8')).to.equal(`${JSON.stringify(POSTCARD)}\n`)
    } finally {
      await close()
    }
  })
})

import { expect } from 'chai'
import { expectAccessible, openConsole } from './console/support/browser.ts'
import { useConsole } from './console/support/use-console.ts'
import { describeWith } from './support/needs.ts'

// The rest is in test/console: npm run test:console
describeWith('chromium', 'the console in a browser without internet', function () {
  this.timeout(60_000)
  const server = useConsole()

  it('chats, shows the tools as they run, keeps the conversation, and sends requests to its own server only', async () => {
    await using view = await openConsole(server.browser, server.url)
    const { page, problems } = view
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(page.url()).to.equal(`${server.url}/console/overview`)
    await page.getByText('Authentication is off').waitFor()
    await page.getByRole('link', { name: 'Playground' }).first().click()
    await page.getByLabel('Message', { exact: true }).fill('/tool calculate {"expression": "6*7"}\nHello **there**')
    await page.keyboard.press('Enter')
    await page.locator('details.tool').getByText('done').waitFor()
    await page.getByText('calculate answered: 42').waitFor()
    await page.locator('.markdown strong', { hasText: 'there' }).waitFor()
    await page.getByText(/tokens in/).waitFor()
    await expectAccessible(page, 'playground')
    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    await page.getByText('Turn completed').waitFor()
    await page.getByRole('link', { name: 'Conversations' }).click()
    await page.locator('.list-item').first().click()
    await page.getByRole('region', { name: 'Messages' }).getByText('calculate answered: 42').waitFor()
    expect(problems).to.deep.equal([])
  })
})

import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { openAuthority } from '../../plugins/mcp/client/test/support/authority.ts'
import { openRemote } from '../../plugins/mcp/client/test/support/remote.ts'
import { describeWith } from '../support/needs.ts'
import { expectAccessible } from './support/browser.ts'
import { useConsole } from './support/use-console.ts'

/** Until new workers serve. */
const RELOAD = { timeout: 60_000 }

describeWith('chromium', 'MCP servers in the console', function () {
  this.timeout(240_000)
  const { at, open } = useConsole()
  const state = (page: Page, word: string) => page.locator('.bar').getByText(word, { exact: true }).waitFor(RELOAD)

  async function add(page: Page, name: string, fields: Readonly<Record<string, string>>) {
    await page.getByRole('button', { name: 'Add a server' }).click()
    await page.getByRole('textbox', { name: /^Name/ }).fill(name)
    for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'hidden', ...RELOAD })
    await page.getByRole('heading', { name, level: 2 }).waitFor()
  }

  it('are connected by the page, and their tools can be called', async () => {
    await using remote = await openRemote(2)
    await using view = await open('mcp')
    const { page, problems } = view
    await add(page, 'greeter', { URL: remote.url })
    await state(page, 'connected')
    await page.getByRole('link', { name: 'Tools 1' }).click()
    await page.getByRole('group').getByText('greet', { exact: true }).waitFor()
    await page.goto(at('tools?id=greeter__greet'))
    await page.getByRole('button', { name: 'Call the tool' }).click()
    await page.getByLabel('Text of the result').getByText('hello from v2').waitFor()
    expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
  })

  it('are logged in to in another tab, and the page goes on by itself', async () => {
    await using authority = await openAuthority()
    await using view = await open('mcp')
    const { page, problems, context } = view
    await add(page, 'guarded', { URL: authority.remote.url, Issuer: authority.issuer })
    await state(page, 'needs auth')
    const login = page.getByRole('region', { name: 'Login' })
    await login.getByRole('button', { name: 'Log in' }).click()
    const link = login.getByRole('link', { name: `Open the login page at ${new URL(authority.issuer).host}` })
    await link.waitFor()
    await expectAccessible(page, 'a login to an MCP server')
    const [tab] = await Promise.all([context.waitForEvent('page'), link.click()])
    await state(page, 'connected')
    expect(tab.url()).to.match(/^http:\/\/127\.0\.0\.1:\d+\/callback/)
    expect(await tab.evaluate('window.opener')).to.equal(null)
    await login.waitFor({ state: 'detached' })
    expect(authority.grants).to.deep.equal(['authorization_code'])
    expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
  })

  it('are logged in to with the address that a browser on another machine shows', async () => {
    await using authority = await openAuthority()
    await using view = await open('mcp')
    const { page } = view
    await add(page, 'distant', { URL: authority.remote.url, Issuer: authority.issuer })
    const login = page.getByRole('region', { name: 'Login' })
    await login.getByRole('button', { name: 'Log in' }).click()
    const href = await login.getByRole('link').getAttribute('href')
    const { headers } = await fetch(href!, { redirect: 'manual' })
    await login.getByText('The server runs on another machine').click()
    const answer = async (address: string) => {
      await login.getByLabel('Address at which the browser ended').fill(address)
      await login.getByRole('button', { name: 'Complete the login' }).click()
    }
    await answer(`${new URL(headers.get('location')!).origin}/callback?code=x&state=forged`)
    await login.getByRole('alert').getByText('INVALID_VALUE').waitFor()
    await answer(headers.get('location')!)
    await state(page, 'connected')
  })
})

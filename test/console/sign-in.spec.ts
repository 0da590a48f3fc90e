import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { expectEverywhere } from './support/accessible.ts'
import { expectAccessible, openConsole } from './support/browser.ts'
import { useConsole } from './support/use-console.ts'

const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }

describeWith('chromium', 'the login of the console in a browser', function () {
  this.timeout(60_000)
  const server = useConsole({ env: AUTH })
  const { open } = server
  const tokenOf = async (name: string, scopes: string) =>
    (await runSvc(['tokens', 'create', '--name', name, '--scope', scopes], { home: server.home })).out.trim()

  it('takes a token, hides what its scopes do not allow, and says within 2 s that it was revoked', async () => {
    const token = await tokenOf('visitor', 'read')
    await using view = await open('overview')
    const { page, problems, requests } = view
    await page.getByLabel('Key or token').fill(token)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(page.url()).to.equal(`${server.url}/console/overview`)
    expect(await page.evaluate('document.cookie')).to.equal('')
    expect(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')).not.to.contain('svc_')
    expect(await page.getByRole('link', { name: 'Playground' }).count()).to.equal(0)
    await page.goto(`${server.url}/console/webhooks`)
    await page.getByText('Your scopes do not allow this page').waitFor()
    expect(await page.getByRole('button', { name: 'Add a webhook' }).count()).to.equal(0)
    await page.goto(`${server.url}/console/overview`)
    await page.getByText('live').first().waitFor()
    await runSvc(['tokens', 'revoke', 'visitor'], { home: server.home })
    const revoked = Date.now()
    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor({ timeout: 2_000 })
    await page.getByText(/Your session is over/).waitFor()
    expect(Date.now() - revoked).to.be.lessThan(2_000)
    await expectAccessible(page, 'login over the page')
    const before = requests.length
    await page.waitForTimeout(1_500)
    expect(requests.slice(before), 'requests of a page without a session').to.deep.equal([])
    // the page goes on where it was
    await page.getByLabel('Key or token').fill(await tokenOf('another', 'read'))
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.getByText('live').first().waitFor()
    await page.getByText('token:another').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('is accessible in both themes and at both widths, also when it refuses a key', async () => {
    await using view = await open('overview')
    const { page, problems } = view
    // a colour that fades would be measured on its way
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
    await expectEverywhere(page, 'login')
    await page.getByLabel('Key or token').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await expectEverywhere(page, 'login that refuses a key', async what => {
      expect(await page.getByRole('alert').isVisible(), what).to.equal(true)
    })
    expect(problems).to.deep.equal([])
  })

  it('opens signed in with the address of svc console, and signs out', async () => {
    const { out } = await runSvc(['console', '--json', '--url', server.url], { home: server.home })
    const { url } = JSON.parse(out) as { url: string }
    await using view = await openConsole(server.browser, url)
    const { page } = view
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(page.url()).not.to.contain('code')
    await page.getByText('token:console').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
    await page.goto(url)
    await page.getByText('the one-time code was used, or has expired: run `svc console` again').waitFor()
  })
})

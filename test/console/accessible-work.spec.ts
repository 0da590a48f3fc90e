import { describeWith } from '../support/needs.ts'
import { checkPages, EACH_PAGE, expectEverywhere, usePageServers } from './support/accessible.ts'
import { openConsole } from './support/browser.ts'

/** Pages, and the buttons that open a dialog. */
const DIALOGS = [
  ['tokens', 'New token'],
  ['webhooks', 'Add a webhook'],
  ['mcp', 'Add a server'],
  ['schedules', 'New schedule'],
  ['jobs', 'New job'],
  ['teams', 'Run a team'],
  ['overview', 'Keys'],
  ['overview', 'Commands'],
] as const

describeWith('chromium', `${EACH_PAGE}: workflows, runs, teams, schedules and jobs`, function () {
  this.timeout(120_000)
  const servers = usePageServers()
  checkPages('work', servers)

  it('and so are the dialogs of all pages', async () => {
    const { browser, full } = servers()
    await using view = await openConsole(browser, `${full.service.url}/console/overview`)
    const { page } = view
    await page.emulateMedia({ reducedMotion: 'reduce' })
    for (const [path, button] of DIALOGS) {
      await page.setViewportSize({ width: 1280, height: 800 })
      await page.goto(`${full.service.url}/console/${path}`)
      await page.getByRole('button', { name: button }).click()
      await page.getByRole('dialog').waitFor()
      await expectEverywhere(page, button)
    }
  })
})

import type { Page } from 'playwright-core'
import type { Scene } from './scene.ts'

interface Picture {
  /** Below `/console/`. */
  readonly path: string
  /** When the page is whole, it shows this. */
  readonly shows: string
  /** What the reader does before the picture is taken. */
  readonly act?: (page: Page) => Promise<unknown>
}

async function talk(page: Page): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill('Why is the order A-1042 late?')
  await page.keyboard.press('Enter')
  await page.getByText(/tokens in/).waitFor()
}

/** The pages of the console in the order of the navigation, each with something open. */
export const picturesOf = ({ ids, chat }: Scene): Readonly<Record<string, Picture>> => ({
  overview: {
    path: 'overview',
    shows: 'live',
    act: async page => {
      await chat('How do I return a pair of shoes?')
      await page.getByText('Turn completed').first().waitFor()
    },
  },
  playground: { path: 'playground', shows: 'Copy as curl', act: talk },
  conversations: { path: `conversations?id=${ids.conversation}`, shows: 'I suggest a refund' },
  traces: { path: `traces?conversation=${ids.conversation}&id=${ids.trace}`, shows: 'find_order' },
  inbox: { path: `inbox?id=${encodeURIComponent(`${ids.waiting} approve`)}`, shows: 'Approve' },
  workflows: { path: 'workflows?id=late-order', shows: 'letter' },
  runs: { path: `runs?id=${ids.waiting}`, shows: 'waiting' },
  'runs-list': { path: 'runs', shows: 'import-stock' },
  teams: { path: `teams?id=${ids.team}`, shows: 'Editor' },
  schedules: { path: 'schedules?id=invoices', shows: 'Europe/Berlin' },
  jobs: { path: 'jobs', shows: 'search.index' },
  'dead-letters': { path: `dead-letters?id=${ids.failed}`, shows: 'import-stock' },
  tools: { path: 'tools?id=refund_order', shows: 'Call the tool' },
  mcp: { path: 'mcp?id=shipping&tab=changes', shows: 'Approve' },
  providers: { path: 'providers?id=studio', shows: 'small-3' },
  plugins: { path: 'plugins?q=plugin-http&id=%40svc%2Fplugin-http', shows: 'in the process of the server' },
  webhooks: { path: `webhooks?id=${ids.webhook}`, shows: 'hooks.shop.example' },
  usage: { path: 'usage?by=model&range=1h', shows: 'small-3' },
  logs: { path: 'logs?q=stock', shows: 'two days old' },
  tokens: { path: 'tokens', shows: 'support-desk' },
  configuration: { path: 'configuration?q=body_limit&id=server.body_limit', shows: 'from default' },
  doctor: {
    path: 'doctor',
    shows: 'Examine the server',
    act: async page => {
      await page.getByRole('button', { name: 'Examine the server' }).click()
      await page.getByRole('button', { name: 'Examine again' }).waitFor({ timeout: 120_000 })
    },
  },
})

import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { PNG } from 'pngjs'
import { chromiumPath } from '../../support/needs.ts'
import { FLAGS } from './browser.ts'
import { picturesOf } from './pictures.ts'
import { type Scene, SCENE_KEY } from './scene.ts'

export const THEMES = ['light', 'dark'] as const
const SIZE = { width: 1280, height: 800 }

/** The fonts of all pictures, so that those of the machine do not matter. */
const FONTS = ['@expo-google-fonts/inter', '@expo-google-fonts/jetbrains-mono'].map(name =>
  dirname(fileURLToPath(import.meta.resolve(`${name}/package.json`)))
)

/** A rectangle of a picture: left, top, width and height. */
export type Area = readonly [number, number, number, number]

export interface Shot {
  readonly name: string
  readonly image: PNG
  /** What differs each time: times, ids, durations. */
  readonly areas: readonly Area[]
}

/** A browser that draws the same on each machine, as far as it can. */
export interface Camera extends AsyncDisposable {
  readonly browser: Browser
  /** Pictures can be compared if they were taken with the same version of browser and fonts. */
  readonly fingerprint: string
}

export async function openCamera(): Promise<Camera> {
  await using ends = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'svc-fonts-'))
  ends.defer(() => rm(folder, { recursive: true, force: true }))
  const config = join(folder, 'fonts.conf')
  await writeFile(config, fontConfig(folder))
  const env = { ...process.env, FONTCONFIG_FILE: config } as Record<string, string>
  const browser = await chromium.launch({ executablePath: chromiumPath()!, args: [...FLAGS, '--font-render-hinting=none'], env })
  ends.defer(() => browser.close())
  const hash = createHash('sha256')
  for (const font of FONTS) hash.update(await readFile(join(font, 'package.json')))
  const fingerprint = `Chromium ${browser.version().split('.')[0]}, fonts ${hash.digest('hex').slice(0, 12)}, ${process.platform} ${process.arch}`
  const end = ends.move()
  return { browser, fingerprint, [Symbol.asyncDispose]: () => end.disposeAsync() }
}

const fontConfig = (cache: string) => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
${FONTS.map(folder => `<dir>${folder}</dir>`).join('\n')}
<cachedir>${cache}</cachedir>
${alias('sans-serif', 'Inter')}${alias('system-ui', 'Inter')}${alias('monospace', 'JetBrains Mono')}</fontconfig>
`
const alias = (name: string, font: string) =>
  `<match><test name="family"><string>${name}</string></test><edit name="family" mode="assign" binding="strong"><string>${font}</string></edit></match>\n`

const TEN_MINUTES = 600_000

/** A signed-in reader in London whose clock stands still. */
export async function openReader(
  { browser }: Camera,
  url: string,
  theme: (typeof THEMES)[number],
  viewport = SIZE
): Promise<BrowserContext> {
  const context = await browser.newContext({
    colorScheme: theme,
    viewport,
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
  })
  await context.clock.setFixedTime(Date.now() + TEN_MINUTES)
  const page = await context.newPage()
  await page.goto(`${url}/console/overview`)
  await page.getByLabel('Key or token').fill(SCENE_KEY)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  await page.close()
  return context
}

/** Takes a picture of each page, one after the other. */
export async function* takePictures(context: BrowserContext, scene: Scene, only?: readonly string[]): AsyncGenerator<Shot> {
  for (const [name, { path, shows, act }] of Object.entries(picturesOf(scene))) {
    if (only && !only.includes(name)) continue
    const page = await context.newPage()
    await page.goto(`${scene.url}/console/${path}`)
    await page.getByText(shows).filter({ visible: true }).first().waitFor()
    await act?.(page)
    yield { name, ...(await stillOf(page)) }
    await page.close()
  }
}

const MOST_TRIES = 12

/** The picture when nothing moves any more: two in a row are the same. */
async function stillOf(page: Page): Promise<Omit<Shot, 'name'>> {
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  await page.evaluate('document.activeElement?.blur()')
  await page.mouse.move(0, 0)
  await page.evaluate(`(${steadyTimes})()`)
  let last = await photograph(page)
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    await page.evaluate('new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 150)))')
    const next = await photograph(page)
    if (next.equals(last)) break
    last = next
  }
  return { image: PNG.sync.read(last), areas: await page.evaluate<Area[]>(`(${findAreas})()`) }
}

const photograph = (page: Page) => page.screenshot({ animations: 'disabled', caret: 'hide' })

/**
 * Runs in the page. How long ago something was depends on how fast the machine takes the pictures, and a text that is wider moves all
 * that follows in its line.
 */
const steadyTimes = `() => {
  for (const time of document.querySelectorAll('main time'))
    if (/ago$|^now$/.test(time.textContent)) time.textContent = '10 min ago'
}`

/** Runs in the page: where texts and drawings are that differ each time. */
const findAreas = `() => {
  const VARIES = /\\d+(\\.\\d+)?\\s?(µs|ms|s|min|h|K|MiB|KiB)\\b|\\b[0-9a-f-]{12,}|conv_|\\d\\d:\\d\\d|\\d{4}-\\d\\d|now|ago\\b|in \\d|127\\.0\\.0\\.1|\\/tmp\\//
  const areas = []
  const add = ({ left, top, width, height }) => {
    if (width > 0 && height > 0) areas.push([Math.floor(left) - 2, Math.floor(top) - 1, Math.ceil(width) + 4, Math.ceil(height) + 2])
  }
  const texts = document.createTreeWalker(document.querySelector('main') ?? document.body, NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const box = text.parentElement
    if (!VARIES.test(box.textContent) && !box.closest('time')) continue
    // in a line of facts, a wider one moves the others: the spans of a trace are not always as many
    const line = box.closest('.list-facts, .bar p')
    if (line) {
      add(line.getBoundingClientRect())
      continue
    }
    const range = document.createRange()
    range.selectNodeContents(text)
    for (const part of range.getClientRects()) add(part)
  }
  for (const drawing of document.querySelectorAll('time, .spark, .chart, .span-detail, [aria-label="Spans"]')) add(drawing.getBoundingClientRect())
  return areas
}`

import { expect } from 'chai'
import pixelmatch from 'pixelmatch'
import { PNG } from 'pngjs'
import { describeWith, skipBecause } from '../support/needs.ts'
import { buildPage } from './support/browser.ts'
import { type Area, type Camera, openCamera, openReader, takePictures, THEMES } from './support/camera.ts'
import { paletteImage } from './support/palette-image.ts'
import { picturesOf } from './support/pictures.ts'
import { openScene, type Scene } from './support/scene.ts'
import { readPicture, readStored } from './support/stored-pictures.ts'

/** Pixels that may differ: of a digit that an area did not cover, not of a control that has moved. */
const MOST_PIXELS = 1_500

describeWith('chromium', 'the pictures of the console in docs/images/console', function () {
  this.timeout(600_000)
  let camera: Camera
  let scene: Scene
  before(async () => {
    buildPage()
    camera = await openCamera()
    scene = await openScene()
  })
  after(async () => {
    await scene?.[Symbol.asyncDispose]()
    await camera?.[Symbol.asyncDispose]()
  })

  it('are there for every page in both themes', async () => {
    const names = Object.keys(picturesOf(scene)).flatMap(name => THEMES.map(theme => `${name}-${theme}`))
    expect(Object.keys((await readStored()).areas)).to.have.members(names)
  })

  for (const theme of THEMES)
    it(`show what the pages show: ${theme}`, async function () {
      const { fingerprint, areas } = await readStored()
      if (fingerprint !== camera.fingerprint)
        return skipBecause(this, `the pictures were taken with ${fingerprint}, this is ${camera.fingerprint}`)
      const context = await openReader(camera, scene.url, theme)
      const differing: string[] = []
      for await (const shot of takePictures(context, scene)) {
        const name = `${shot.name}-${theme}`
        const varying = [...shot.areas, ...(areas[name] ?? [])]
        const count = differenceOf(PNG.sync.read(paletteImage(shot.image)), await readPicture(name), varying)
        if (count > MOST_PIXELS) differing.push(`${name}: ${count} pixels`)
      }
      await context.close()
      expect(differing, 'look at the pages, then run: npm run console:screenshots').to.deep.equal([])
    })

  it('differ where a page does', async () => {
    const [tokens, jobs] = [await readPicture('tokens-light'), await readPicture('jobs-light')]
    expect(differenceOf(tokens, jobs, [])).to.be.greaterThan(MOST_PIXELS)
  })
})

/** The number of pixels that differ outside of these areas. */
function differenceOf(one: PNG, other: PNG, areas: readonly Area[]): number {
  expect([one.width, one.height]).to.deep.equal([other.width, other.height])
  for (const image of [one, other]) for (const area of areas) blank(image, area)
  return pixelmatch(one.data, other.data, undefined, one.width, one.height, { threshold: 0.2 })
}

function blank({ width, height, data }: PNG, [left, top, wide, high]: Area): void {
  for (let y = Math.max(0, top); y < Math.min(height, top + high); y++)
    data.fill(0, (y * width + Math.max(0, left)) * 4, (y * width + Math.max(0, Math.min(width, left + wide))) * 4)
}

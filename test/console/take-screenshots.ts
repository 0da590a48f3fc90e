// Takes the pictures of the pages of the console into docs/images/console: `npm run console:screenshots`
//   npm run console:screenshots -- runs mcp    takes these only
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { argv, stderr } from 'node:process'
import { buildPage } from './support/browser.ts'
import { openCamera, openReader, takePictures, THEMES } from './support/camera.ts'
import { paletteImage } from './support/palette-image.ts'
import { openScene } from './support/scene.ts'
import { PICTURES, readStored, writeStored } from './support/stored-pictures.ts'

buildPage()
await mkdir(PICTURES, { recursive: true })
const only = argv.slice(2)
await using camera = await openCamera()
await using scene = await openScene()
const areas = { ...(await readStored()).areas }
let size = 0
for (const theme of THEMES) {
  const context = await openReader(camera, scene.url, theme)
  for await (const shot of takePictures(context, scene, only.length > 0 ? only : undefined)) {
    const name = `${shot.name}-${theme}`
    const bytes = paletteImage(shot.image)
    await writeFile(join(PICTURES, `${name}.png`), bytes)
    size += bytes.length
    areas[name] = shot.areas
  }
  await context.close()
}
await writeStored({ fingerprint: camera.fingerprint, areas })
stderr.write(`svc: ${Math.round(size / 1024)} KiB in ${join('docs', 'images', 'console')}\n`)

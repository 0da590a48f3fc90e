import { crc32, deflateSync } from 'node:zlib'
import type { PNG } from 'pngjs'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const MOST_COLORS = 256
const EXACT = 24

/** A PNG file with a palette, a third of the size of one in true colour. pngjs writes no palettes. */
export function paletteImage({ width, height, data }: PNG): Buffer {
  const pixels = new Uint32Array(width * height)
  for (let at = 0; at < pixels.length; at++) pixels[at] = (data.readUInt32BE(at * 4) >>> 8) & 0xffffff
  const palette = chosenColors(pixels)
  const nearest = new Map(palette.map((color, index) => [color, index]))
  const rows = Buffer.alloc((width + 1) * height) // each row begins with its filter: none
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const color = pixels[y * width + x]!
      let index = nearest.get(color)
      if (index === undefined) nearest.set(color, (index = nearestOf(color, palette)))
      rows[y * (width + 1) + x + 1] = index
    }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3, 0, 0, 0], 8) // bits of an index, and that there is a palette
  const colors = Buffer.from(palette.flatMap(partsOf))
  const image = deflateSync(rows, { level: 9, memLevel: 9 })
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', colors),
    chunk('IDAT', image),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const partsOf = (color: number): [number, number, number] => [color >>> 16, (color >>> 8) & 0xff, color & 0xff]

/** Squared distance of colours that look the same: the many shades of the edges of letters take no place from a rare colour. */
const ALIKE = 150

/** The most frequent colours that do not look the same. */
function chosenColors(pixels: Uint32Array): number[] {
  const counts = new Map<number, number>()
  for (const color of pixels) counts.set(color, (counts.get(color) ?? 0) + 1)
  const sorted = [...counts].sort(([a, many], [b, few]) => few - many || a - b)
  const chosen: number[] = []
  for (const [color] of sorted) {
    if (chosen.length === MOST_COLORS) break
    // large areas keep their colour
    if (chosen.length < EXACT || distanceOf(color, chosen[nearestOf(color, chosen)]!) > ALIKE) chosen.push(color)
  }
  return chosen
}

function nearestOf(color: number, palette: readonly number[]): number {
  let [best, least] = [0, Infinity]
  for (const [index, other] of palette.entries()) {
    const distance = distanceOf(color, other)
    if (distance < least) [best, least] = [index, distance]
  }
  return best
}

function distanceOf(one: number, other: number): number {
  const [red, green, blue] = partsOf(one)
  const [r, g, b] = partsOf(other)
  return (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2
}

function chunk(type: string, content: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(content.length)
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([head, body, sum])
}

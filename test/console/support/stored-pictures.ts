import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PNG } from 'pngjs'
import type { Area } from './camera.ts'

/** Where the documentation keeps its pictures of the console. */
export const PICTURES = fileURLToPath(new URL('../../../docs/images/console/', import.meta.url))
const RECORD = join(PICTURES, 'pictures.json')

interface Stored {
  /** What took them. */
  readonly fingerprint: string
  /** Of each picture, what differs each time. */
  readonly areas: Readonly<Record<string, readonly Area[]>>
}

export async function readStored(): Promise<Stored> {
  try {
    return JSON.parse(await readFile(RECORD, 'utf8')) as Stored
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { fingerprint: '', areas: {} }
    throw error
  }
}

export async function writeStored({ fingerprint, areas }: Stored): Promise<void> {
  const lines = Object.entries(areas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, list]) => `    ${JSON.stringify(name)}: ${JSON.stringify(list)}`)
  await writeFile(RECORD, `{\n  "fingerprint": ${JSON.stringify(fingerprint)},\n  "areas": {\n${lines.join(',\n')}\n  }\n}\n`)
}

export const readPicture = async (name: string): Promise<PNG> => PNG.sync.read(await readFile(join(PICTURES, `${name}.png`)))

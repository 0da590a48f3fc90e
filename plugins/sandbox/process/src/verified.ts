import { readFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { isWithin } from './paths.ts'

/** One line of `/proc/self/mountinfo`: of which file system what is mounted where. Each path is written as the kernel does. */
interface Mount {
  readonly device: string
  readonly root: string
  readonly at: string
}

/** What the kernel mounts, or bubblewrap puts, in `/proc` and `/dev`. */
const [IN_PROC, IN_DEV] = ['sys sysrq-trigger irq bus', 'null zero full random urandom tty pts console shm mqueue']
const within = (folder: string, names: string) => names.split(' ').map(name => `${folder}/${name}`)
const OWN = ['/', ...within('/proc', IN_PROC), ...within('/dev', IN_DEV)]

/** Reads the mounts inside, and runs the program only where each is one that was meant, once. No program is started for it. */
const CHECK = `
nl='
' seen=$nl bound=$1 other=$2 inner=$3
shift 3
while read -r _ _ device root at _; do
  case $inner in *"$nl$device $root $at$nl"*) continue ;; esac
  case $seen in *"$nl$at$nl"*) bad=1 ;; esac
  case $bound$other in *"$nl$device $root $at$nl"* | *"$nl$at$nl"*) ;; *) bad=1 ;; esac
  seen=$seen$at$nl
done < /proc/self/mountinfo
[ -z "$bad" ] && exec "$@"
echo 'svc: a folder was replaced while the sandbox was made; nothing was run' >&2
exit 126`

/**
 * Words that stand before the program. bubblewrap follows links, and another process that may write the same folder can put a link in the place of a folder
 * between the look at it and the mount: then something else of the host would be seen, or be writable. So what is mounted is compared with what was meant
 * before anything runs. `line` is the command line of bubblewrap, `write` what may be written.
 */
export async function verifying(line: readonly string[], write: readonly string[]): Promise<string[]> {
  const host = mountsIn(await readFile('/proc/self/mountinfo', 'utf8'))
  const bound: string[] = []
  const other = [...OWN]
  const sources: string[] = []
  line.slice(0, line.indexOf('--')).forEach((word, at) => {
    const [first, second] = [line[at + 1]!, line[at + 2]!]
    if (/^--(ro-)?bind$/.test(word)) {
      bound.push(expected(host, first, second))
      sources.push(first)
    } else if (/^--(tmpfs|proc|dev)$/.test(word)) other.push(escaped(first))
  })
  // what is mounted on the host below a folder comes with it, more than once where folders in it are bound as well
  const below = host.filter(({ at }) => sources.some(source => at !== escaped(source) && isWithin(at, escaped(source))))
  const isWritable = ({ at }: Mount) => write.some(folder => isWithin(at, escaped(folder)))
  const inner = below.filter(isWritable).map(({ device, root, at }) => `${device} ${root} ${at}`)
  const apart = below.filter(one => !isWritable(one)).map(({ at }) => at)
  return ['/bin/sh', '-c', CHECK, 'sh', lines(bound), lines([...other, ...apart]), lines(inner)]
}

const lines = (all: readonly string[]) => `\n${all.map(one => `${one}\n`).join('')}`

function mountsIn(text: string): Mount[] {
  return text
    .trimEnd()
    .split('\n')
    .map(line => {
      const [, , device = '', root = '', at = ''] = line.split(' ')
      return { device, root, at }
    })
}

/** How a folder of the host is told once it is mounted. */
function expected(host: readonly Mount[], source: string, place: string): string {
  const path = escaped(source)
  const around = host.filter(({ at }) => isWithin(path, at)).toSorted((one, other) => one.at.length - other.at.length)
  const { device, root, at } = around.at(-1)!
  const inner = relative(at, path)
  return `${device} ${inner === '' ? root : `${root === '/' ? '' : root}/${inner}`} ${escaped(place)}`
}

/** The kernel writes these four as octal numbers. */
const escaped = (path: string) =>
  path.replace(/[ \t\n\\]/g, character => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)

/** Work done so far, and the resident memory of a worker in MiB. */
export type Point = readonly [done: number, mib: number]

/** MiB per `per` units of work, by least squares. */
function slopeOf(points: readonly Point[], per: number): number {
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const sum = (of: (point: Point) => number) => points.reduce((total, point) => total + of(point), 0)
  return (per * sum(([done, mib]) => (done - x) * (mib - y))) / sum(([done]) => (done - x) ** 2)
}

/** The slope as text. */
export function slopeNote(points: readonly Point[], per: number, what: string): string {
  const slope = slopeOf(points, per)
  return `${slope < 0 ? '−' : '+'}${Math.abs(slope).toFixed(2)} MiB per ${per.toLocaleString('en')} ${what}`
}

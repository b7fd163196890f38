// Python's strftime for the directives that chat templates use, in UTC and English so that every machine agrees.

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

/** `date` written by `format`: %Y %m %d %H %M %S %y %B %b %A %a %%; another directive throws. */
export function strftime(date: Date, format: string): string {
  const two = (n: number): string => String(n).padStart(2, '0')
  const month = MONTHS[date.getUTCMonth()]!
  const day = DAYS[date.getUTCDay()]!
  const written: Record<string, string> = {
    Y: String(date.getUTCFullYear()),
    y: two(date.getUTCFullYear() % 100),
    m: two(date.getUTCMonth() + 1),
    d: two(date.getUTCDate()),
    H: two(date.getUTCHours()),
    M: two(date.getUTCMinutes()),
    S: two(date.getUTCSeconds()),
    B: month,
    b: month.slice(0, 3),
    A: day,
    a: day.slice(0, 3),
    '%': '%',
  }
  return format.replace(/%(.?)/gs, (directive, letter: string) => {
    const text = written[letter]
    if (text === undefined) throw new Error(`strftime: the directive ${directive} is not served`)
    return text
  })
}
